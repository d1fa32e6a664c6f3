"""The code that runs inside a child: take a task from the channel, call the handler, report the outcome.

A child never writes the execution's row. The supervisor (the main process of the consumer) settles the attempt. A child
has a database connection only if a handler has opened one, and closes it when no next run follows within a second.
"""

from __future__ import annotations

import contextvars
import logging
import os
import socket
import sys
import traceback
from contextlib import nullcontext, suppress
from typing import Any

from django.conf import settings
from django.db import connections
from django.utils import translation

from scheduling.consumer import framing
from scheduling.consumer.child_state import ChildState, close_idle_connections, memory_bytes, open_streams
from scheduling.consumer.descendants import named_descendants, own_children
from scheduling.consumer.interpreter_state import yield_to_supervisor
from scheduling.consumer.keeper import become_keeper
from scheduling.consumer.progress import ProgressLimit
from scheduling.consumer.terminated import Terminated, terminable
from scheduling.core.json_bounds import NotStorable
from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.core.results import encode
from scheduling.execution.own_broker import close_own_broker
from scheduling.handlers import Handler, UnknownHandler, find
from scheduling.handlers.error_rules import RETRY_ALL, ErrorRules
from scheduling.handlers.params import ParamsInvalid, merge, validate
from scheduling.handlers.run import run_from
from scheduling.logs import RunLogger, level_name
from scheduling.logs import validate as validate_level

LEVEL_MARK = "\x1e"
"""Encloses the level at the beginning of a logged line: LEVEL_MARK, level, LEVEL_MARK, text."""

TRACEBACK_LIMIT = 64_000
"""The maximum length of a traceback in characters. A longer traceback loses its middle part."""
SHOWN_LIMIT = 10_000
"""The maximum length of the value of `sys.exit` in the error, in characters."""

LINGER_SECONDS = 1.0
"""How long a child that waits for its next run keeps the database connections of its last run. To connect for each run
of a backlog would take longer than many of these runs."""


class MarkedFormatter(logging.Formatter):
    """Formats log records for the supervisor."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of the record with its level before each line, including the lines of a traceback."""
        text = super().format(record)
        mark = f"{LEVEL_MARK}{level_name(record.levelno)}{LEVEL_MARK}"
        return "\n".join(mark + line for line in text.splitlines() or [""])


def main(channel: socket.socket) -> int:
    """Run tasks until the channel is closed; returns the exit status. A child with one run has the run's exit code.

    The child sends two messages for each task: `ended` with the outcome, and `rested` when the process is restored. So
    the supervisor settles a run while the child is restored, and an error while restoring cannot change an outcome.
    """
    os.environ["CRON_CHILD"] = "1"
    yield_to_supervisor()
    open_streams()
    _configure_logging()
    state = ChildState()
    reader = framing.FrameReader()
    pending: list[dict[str, Any]] = []
    left, status = "", 0
    while True:
        task = _next_task(channel, reader, pending)
        if task is None:
            return 0
        answer = _perform(task, channel)
        _flush()
        if task.get("leaves_processes") and not answer.get("terminated"):
            left = answer["left"] = named_descendants()
        try:
            channel.sendall(_packed(answer, task))
            if task.get("fresh") or answer.get("terminated"):
                status = 0 if answer.get("terminated") else answer["exit_code"]
                break
            close_own_broker()  # the handler may have asked for runs; the next run finds no thread and no socket
            clean = state.restore() and not _has_children()
            channel.sendall(_packed({"op": "rested", "clean": clean, "memory": memory_bytes()}, task))
        except OSError:
            return 0  # the supervisor has died; another process settles the run after the lease has run out
    with suppress(Exception):
        connections.close_all()
        logging.shutdown()
    if left:
        become_keeper()
    return status


def _next_task(
    channel: socket.socket, reader: framing.FrameReader, pending: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Wait for the next task; returns None if the supervisor has closed the channel or has died."""
    try:
        if not pending:
            close_idle_connections(channel, LINGER_SECONDS)
        return framing.receive(channel, reader, pending)
    except OSError:
        return None


def _configure_logging() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(MarkedFormatter())
    root = logging.getLogger()
    for former in list(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(validate_level("text", getattr(settings, "LOG_LEVEL", "INFO")))


def _perform(task: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    """Call the handler; returns the outcome as JSON data. Every exception becomes an outcome."""
    progress = ProgressLimit(lambda text: channel.sendall(_packed({"op": "progress", "text": text}, task)))
    terminable(True)
    try:
        # The handler runs in a copy of the context. If the handler changes a context variable (for example the active
        # language or time zone), the change ends with the run.
        answer = contextvars.copy_context().run(_call, task, progress)
    except Terminated:
        answer = _failed(sys.exc_info()[1], terminated=True)
    finally:
        terminable(False)
    return answer | {"progress": progress.unsent}


def _call(task: dict[str, Any], progress: ProgressLimit) -> dict[str, Any]:
    called, rules = False, RETRY_ALL
    try:
        handler = find(task["type"], task["handler"])
        params = validate(handler, merge(task["target_params"], task["params"]))
        called, rules = True, handler.errors
        result = _portable(_run(handler, params, task, progress))
    except (UnknownHandler, NonRetryableError, ParamsInvalid) as error:
        # If the handler is unknown, a retry can help, because a rolling deploy may still add the handler. A retry does
        # not help against the other two errors.
        return _failed(error, retryable=isinstance(error, UnknownHandler), called=called)
    except RetryableError as error:
        return _failed(error, retry_after=error.retry_after)
    except SystemExit as error:
        if error.code in (None, 0):
            return {"op": "ended", "outcome": "succeeded", "exit_code": 0}
        # A process shows the lowest eight bits of a number, and 1 for any other value.
        code = error.code & 0xFF if type(error.code) is int else 1
        return _failed(error) | {"message": f"The handler exited with {_shown(error.code)}.", "exit_code": code}
    except Terminated:
        raise
    except BaseException as error:  # handlers may raise anything, and every exception is an outcome
        return _failed(error, retryable=_may_retry(rules, error))
    return {"op": "ended", "outcome": "succeeded", "exit_code": 0, "result": result}


def _run(handler: Handler, params: Any, task: dict[str, Any], progress: ProgressLimit) -> Any:
    facts = task["run"]
    os.environ["RETRY_COUNT"] = str(facts["retry_count"])
    os.environ["CRON_EXECUTION_ID"] = str(facts["execution_id"])
    logger = RunLogger(logging.getLogger("scheduling.run"), {})
    language = facts.get("language")
    # Without a language, the run has the site's LANGUAGE_CODE: `override(None)` would switch translation off.
    with translation.override(language) if language else nullcontext():
        return handler.call(params, run_from(facts, logger, progress.report))


def _failed(error: BaseException | None, **more: Any) -> dict[str, Any]:
    """The report of a failed attempt. `more` adds further fields."""
    return {"op": "ended", "outcome": "failed", "exit_code": 1, **_error(error), **more}


def _may_retry(rules: ErrorRules, error: BaseException) -> bool:
    try:
        return rules.may_retry(error)
    except Terminated:
        raise
    except BaseException:  # `retry_if` is the project's code and may raise anything, even SystemExit
        return True


def _error(error: BaseException | None) -> dict[str, Any]:
    if error is None:
        return {"error_class": "", "message": "", "traceback": ""}
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next  # leave out the frames of this module
    try:
        message = str(error)
        text = "".join(traceback.format_exception(kind, error, trace))
    except Terminated:
        raise
    except BaseException:  # `__str__` may be the project's code and may raise any exception, even SystemExit
        message, text = "(the error could not be shown)", ""
    if len(text) > TRACEBACK_LIMIT:
        text = text[: TRACEBACK_LIMIT // 2] + "\n... left out ...\n" + text[-TRACEBACK_LIMIT // 2 :]
    return {"error_class": name, "message": message[:TRACEBACK_LIMIT], "traceback": text}


def _packed(frame: dict[str, Any], task: dict[str, Any]) -> bytes:
    """Add the execution's id and the attempt's number to a frame. Returns the packed frame.

    If packing fails, only the fields that are texts, integers or booleans are kept.
    """
    attempt = {name: task["run"][name] for name in ("execution_id", "attempt")}
    try:
        return framing.pack(frame | attempt)
    except Exception:  # for example, the `retry_after` of a RetryableError is not a number
        plain = {name: value for name, value in frame.items() if type(value) in (str, int, bool)}
        return framing.pack(plain | attempt)


def _portable(result: Any) -> str:
    """The handler's result as JSON. A result that cannot be stored does not fail the run: the output says why."""
    try:
        return encode(result)
    except NotStorable as error:
        logging.getLogger("scheduling.run").info("The result of the handler is not stored: it %s", error)
    except Terminated:
        raise
    except BaseException as error:  # code of the project may run in a subclass of dict, and may raise anything
        logging.getLogger("scheduling.run").info("The result of the handler is not stored: %s", type(error).__name__)
    return ""


def _shown(value: Any) -> str:
    """The `repr` of a value, cut to SHOWN_LIMIT characters."""
    try:
        return repr(value)[:SHOWN_LIMIT]
    except Terminated:
        raise
    except BaseException:
        return f"a {type(value).__name__}"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a handler may have closed or replaced the stream
            stream.flush()


def _has_children() -> bool:
    """Whether the handler left processes running. If so, the child is not used again."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:  # those that have ended are no reason for a new child
            pass
    except ChildProcessError:
        return False
    return bool(own_children())
