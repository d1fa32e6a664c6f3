"""Logs the start of an attempt and the life of its process in the words of the original contract."""

from __future__ import annotations

import logging
import os
from datetime import datetime

from scheduling.consumer.notices import HANDED_BACK
from scheduling.consumer.running import Running
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import signal_name
from scheduling.handlers.params import merge
from scheduling.handlers.run_config import RunConfig
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_named
from scheduling.logs import get_logger, short_json
from scheduling.processes.execution_signals import send_started

log = get_logger(__name__)
processes = get_logger("scheduling.output")


def announce_start(message: TaskMessage, config: RunConfig, at: datetime) -> None:
    """Log that the attempt starts, which retry it is, and, at DEBUG, its parameters with masked secrets.

    Receivers of `execution_started` are told.
    """
    context = {"type": message.type, "id": message.id, "scheduler_id": message.scheduler_id}
    attempt = {"execution": message.execution_id, "attempt": message.attempt}
    log.info("Processing task", extra=context | attempt)
    if message.retry_count:
        text, most = ("Restart: %s%s", "") if config.service else ("Retry attempt: %s/%s", config.policy.max_retries)
        log.info(text, message.retry_count, most, extra=context | attempt)
    if log.isEnabledFor(logging.DEBUG):
        params = message.params if isinstance(message.params, dict) else {}
        shown = masked(handler_named(message.type, config.handler), merge(config.target_params, params))
        log.debug("Task parameters: %s", short_json(shown))
    send_started(message, config.handler, at)


def log_spawned(run: Running) -> None:
    """Log that the run has its process. A process that has run other tasks before was not spawned for this run."""
    new = run.child is not None and run.child.runs == 1
    _log(run, "Process spawned (instant mode)" if new else "Process used again (instant mode)")


def log_finished(run: Running) -> None:
    """Log how the handler ended, as its process has reported it."""
    outcome = (run.answer or {}).get("outcome")
    if outcome == HANDED_BACK:
        _log(run, "Process handed its run back at a checkpoint")
        return
    succeeded = outcome in ("succeeded", "snoozed", "skipped")
    _log(run, "Process finished successfully" if succeeded else "Process finished with an error")


def log_exited(run: Running) -> None:
    """Log how the process of a run ended."""
    status = run.child.status if run.child is not None else None
    if status is None:
        return
    if os.WIFSIGNALED(status):
        _log(run, f"Process ended by {signal_name(os.WTERMSIG(status))}")
        return
    code = os.waitstatus_to_exitcode(status)
    _log(run, f"Process exited {'successfully ' if code == 0 else ''}(code: {code})")


def _log(run: Running, text: str) -> None:
    """Log at INFO if the process is for this run alone. Processes of short runs serve many, so they log at DEBUG."""
    level = logging.INFO if run.config.fresh else logging.DEBUG
    processes.log(level, "%s %s", run.label, text, extra={"pid": run.pid})
