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
from contextlib import nullcontext, suppress
from typing import Any

from django.db import connections

from scheduling.consumer import framing
from scheduling.consumer.child_answers import ended_by, failed, packed, portable, succeeded, told
from scheduling.consumer.child_batch import BatchCall, Watcher, members_of
from scheduling.consumer.child_logging import leave_console, log_to_pipe
from scheduling.consumer.child_secrets import masked_log
from scheduling.consumer.child_state import ChildState, close_idle_connections, memory_bytes, open_streams
from scheduling.consumer.descendants import named_descendants, own_children
from scheduling.consumer.handler_call import call, surroundings
from scheduling.consumer.interpreter_state import yield_to_supervisor
from scheduling.consumer.keeper import become_keeper
from scheduling.consumer.notices import STOP, CancelWatch, Watch, is_notice
from scheduling.consumer.precondition import check_needed
from scheduling.consumer.progress import ProgressLimit
from scheduling.consumer.resource_use import ResourceUse
from scheduling.consumer.run_params import checked_params
from scheduling.consumer.terminated import Terminated, terminable
from scheduling.execution.attachments import attach
from scheduling.execution.own_broker import close_own_broker
from scheduling.execution.steps import DatabaseLedger
from scheduling.handlers import Handler, UnknownHandler, find, handlers
from scheduling.handlers.error_rules import RETRY_ALL
from scheduling.handlers.params import merge, unknown
from scheduling.handlers.run import run_from
from scheduling.handlers.steps import Steps

LINGER_SECONDS = 1.0
"""How long a child that waits for its next run keeps the database connections of its last run. To connect for each run
of a backlog would take longer than many of these runs."""


def prepare() -> None:
    """Do in the forkserver, before the first fork, what is the same in all children."""
    leave_console()
    for handler in handlers():
        with suppress(Exception):  # the check of the params says it
            unknown(handler, {})


def main(channel: socket.socket) -> int:
    """Run tasks until the channel is closed; returns the exit status. A child with one run has the run's exit code.

    The child sends two messages for each task: `ended` with the outcome, and `rested` when the process is restored. So
    the supervisor settles a run while the child is restored, and an error while restoring cannot change an outcome.
    """
    os.environ["CRON_CHILD"] = "1"
    yield_to_supervisor()
    open_streams()
    log_to_pipe()
    state: ChildState | None = None
    reader = framing.FrameReader()
    pending: list[dict[str, Any]] = []
    left, status = "", 0
    while True:
        task = _next_task(channel, reader, pending)
        if task is None:
            return 0
        if state is None and not task.get("fresh"):  # after a fresh run, nothing is restored
            state = ChildState()
        answer = _perform(task, channel, pending)
        _flush()
        if task.get("leaves_processes") and not answer.get("terminated"):
            left = answer["left"] = named_descendants()
        try:
            channel.sendall(packed(answer, task))
            if state is None or answer.get("terminated"):
                status = 0 if answer.get("terminated") else answer["exit_code"]
                break
            close_own_broker()  # the handler may have asked for runs; the next run finds no thread and no socket
            clean = state.restore() and not _has_children()
            channel.sendall(packed({"op": "rested", "clean": clean, "memory": memory_bytes()}, task))
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
        task = framing.receive(channel, reader, pending)
        while task is not None and is_notice(task):  # of the last run
            task = framing.receive(channel, reader, pending)
        return task
    except OSError:
        return None


def _perform(task: dict[str, Any], channel: socket.socket, pending: list[dict[str, Any]]) -> dict[str, Any]:
    """Call the handler; returns the outcome as JSON data. Every exception becomes an outcome."""
    progress = ProgressLimit(lambda text: channel.sendall(packed({"op": "progress", "text": text}, task)))
    watch = CancelWatch(channel, task, lambda: channel.sendall(packed({"op": "watches"}, task)), pending)
    ledger = DatabaseLedger(task["run"]["execution_id"], task["run"]["attempt"])
    ways = {
        "report_progress": progress.report,
        "is_cancelled": watch,
        "attach_file": attach,
        "steps": Steps(ledger, Watch(STOP, channel, task, pending)),
    }
    used = ResourceUse()
    terminable(True)
    try:
        # The handler runs in a copy of the context. If the handler changes a context variable (for example the active
        # language or time zone), the change ends with the run.
        with masked_log(task):
            answer = contextvars.copy_context().run(call_handler, task, ways)
    except Terminated:
        answer = failed(sys.exc_info()[1], terminated=True)
    finally:
        terminable(False)
    return answer | {"progress": progress.unsent} | used.so_far()


def call_handler(task: dict[str, Any], ways: dict[str, Any], watch: Watcher | None = None) -> dict[str, Any]:
    """Validate the params of a task and call its handler; returns the outcome as JSON data.

    Args:
        ways: the functions through which the run reaches the world outside its handler, by the names of fields of Run.
        watch: sees the error that the handler, or the check of its params, raises (`scheduling.testing`).
    """
    called, rules, at_end = False, RETRY_ALL, None
    try:
        with watch or nullcontext():
            handler = find(task["type"], task["handler"])
            if handler.batch is not None:
                return BatchCall(handler, task, ways, watch).answer()
            if len(members_of(task)) > 1:  # the forkserver has loaded its code a moment before or after the consumer
                raise UnknownHandler(f"{handler.name!r} takes no batches in this process, and does in its consumer.")
            params = checked_params(handler, merge(task["target_params"], task["params"]))
            called, rules, at_end = True, handler.errors, handler.at_end
            result = portable(_run(handler, params, task, ways))
    except Terminated:
        raise
    except BaseException as error:  # handlers may raise anything, and every exception is an outcome
        return told(ended_by(error, called, rules), at_end)
    return told(succeeded(result), at_end)


def _run(handler: Handler, params: Any, task: dict[str, Any], ways: dict[str, Any]) -> Any:
    with surroundings(task["run"]) as logger:
        run = run_from(task["run"], logger, **ways)
        check_needed(handler, params, run)
        result = call(handler, params, run)
        if run.steps.handed_back is not None:  # the handler has caught it, and left something undone
            raise run.steps.handed_back
        return result


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
