"""What runs inside a child: take a task from the channel, call the handler, say how it ended.

The child never touches the execution's row; the supervisor settles. It opens a database
connection only if the handler does.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from types import FrameType
from typing import Any

from django.conf import settings
from django.db import connections, reset_queries
from django.utils import translation

from scheduling.consumer import wire
from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.logs import RunLogger, level_name
from scheduling.logs import validate as validate_level
from scheduling.params import ParamsInvalid, merge, validate
from scheduling.registry import Handler, UnknownHandler, find
from scheduling.run import run_from

LEVEL_MARK = "\x1e"
"""Begins a line that carries its log level: mark, level, mark, text."""

TRACEBACK_LIMIT = 64_000


class Terminated(BaseException):
    """SIGTERM arrived while a handler ran: unwind it, so that its `finally` blocks run."""


class MarkedFormatter(logging.Formatter):
    """Lines for the supervisor, each with its level."""

    def format(self, record: logging.LogRecord) -> str:
        """Every line of the record carries the mark, so that a trace keeps its level."""
        text = super().format(record)
        mark = f"{LEVEL_MARK}{level_name(record.levelno)}{LEVEL_MARK}"
        return "\n".join(mark + line for line in text.splitlines() or [""])


def main(channel: socket.socket) -> int:
    """Serve tasks until the channel ends; returns the exit status."""
    os.environ["CRON_CHILD"] = "1"
    sys.stdout = open(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    _configure_logging()
    reader, pending = wire.FrameReader(), []  # type: wire.FrameReader, list[dict[str, Any]]
    runs = 0
    while True:
        try:
            task = wire.receive(channel, reader, pending)
        except OSError:
            return 0
        if task is None:
            return 0
        runs += 1
        answer = _perform(task, channel)
        with suppress(ValueError, OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        answer["memory"] = _memory_bytes()
        answer["leftovers"] = _has_children()
        try:
            channel.sendall(wire.pack(answer))
        except OSError:
            return 0  # the supervisor is gone; the lease will tell
        if task.get("fresh") or answer.get("terminated"):
            _farewell()
            return 0


def _configure_logging() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(MarkedFormatter())
    root = logging.getLogger()
    for former in list(root.handlers):
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(validate_level("text", getattr(settings, "LOG_LEVEL", "INFO")))


def _perform(task: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    """Call the handler and describe the end as data; every exception ends here."""
    _terminable(True)
    try:
        return _call(task, channel)
    except Terminated:
        return {"op": "ended", "terminated": True, "outcome": "failed", **_error(sys.exc_info()[1])}
    finally:
        _terminable(False)
        _tidy_connections()


def _call(task: dict[str, Any], channel: socket.socket) -> dict[str, Any]:
    try:
        handler = find(task["type"], task["handler"])
        params = validate(handler, merge(task["target_params"], task["params"]))
        result = _run(handler, params, task, channel)
    except (UnknownHandler, NonRetryableError, ParamsInvalid) as error:
        # Missing code is retried: a rolling deploy may bring it. Params do not mend themselves.
        retryable = isinstance(error, UnknownHandler)
        return {"op": "ended", "outcome": "failed", "retryable": retryable, **_error(error)}
    except RetryableError as error:
        return {"op": "ended", "outcome": "failed", "retry_after": error.retry_after, **_error(error)}
    except SystemExit as error:
        if error.code in (None, 0):
            return {"op": "ended", "outcome": "succeeded"}
        return {
            "op": "ended",
            "outcome": "failed",
            **_error(error),
            "message": f"The handler exited with {error.code!r}.",
        }
    except Terminated:
        raise
    except BaseException as error:  # a handler may raise anything; all of it is an outcome
        return {"op": "ended", "outcome": "failed", **_error(error)}
    return {"op": "ended", "outcome": "succeeded", "result": result if _small(result) else None}


def _run(handler: Handler, params: Any, task: dict[str, Any], channel: socket.socket) -> Any:
    facts = task["run"]
    os.environ["RETRY_COUNT"] = str(facts["retry_count"])
    os.environ["CRON_EXECUTION_ID"] = str(facts["execution_id"])
    logger = RunLogger(logging.getLogger("scheduling.run"), {})
    last_sent = 0.0

    def report_progress(text: str) -> None:
        nonlocal last_sent
        now = time.monotonic()
        if now - last_sent >= 0.25:  # a tight loop must not flood the channel
            last_sent = now
            channel.sendall(wire.pack({"op": "progress", "text": text}))

    run = run_from(facts, logger, report_progress)
    language = facts.get("language")
    with translation.override(language or None):
        return handler.call(params, run)


def _error(error: BaseException | None) -> dict[str, Any]:
    if error is None:
        return {"error_class": "", "message": "", "traceback": ""}
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next  # the handler's own frames, not ours
    try:
        message = str(error)
        text = "".join(traceback.format_exception(kind, error, trace))
    except Exception:
        message, text = "(the error could not be shown)", ""
    if len(text) > TRACEBACK_LIMIT:
        text = text[: TRACEBACK_LIMIT // 2] + "\n... left out ...\n" + text[-TRACEBACK_LIMIT // 2 :]
    return {"error_class": name, "message": message[:TRACEBACK_LIMIT], "traceback": text}


def _small(result: Any) -> bool:
    return isinstance(result, str | int | float | bool | dict | list) and len(repr(result)) < 10_000


def _terminable(on: bool) -> None:
    def raise_terminated(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: the clean-up itself is not interrupted
        raise Terminated

    signal.signal(signal.SIGTERM, raise_terminated if on else signal.SIG_DFL)


def _tidy_connections() -> None:
    """Between two runs: no open transaction, no stale connection, no query log."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is None:
            continue
        if connection.in_atomic_block or connection.needs_rollback:
            connection.close()
        else:
            with suppress(Exception):
                connection.close_if_unusable_or_obsolete()
    reset_queries()


def _has_children() -> bool:
    """Whether the handler left processes running: the child is then not used again."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return bool(file.read().strip())
    except OSError:
        return False


def _memory_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _farewell() -> None:
    with suppress(Exception):
        connections.close_all()
        logging.shutdown()
