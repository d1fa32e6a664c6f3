"""Sends the signals of executions to the receivers of the project, each after the present transaction."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.dispatch import Signal

from scheduling.core.lifecycle import State
from scheduling.core.messages import TaskMessage
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.signals import execution_skipped, execution_started, execution_succeeded

log = get_logger(__name__)


def send(signal: Signal, name: str, facts: dict[str, Any], context: dict[str, Any] | None = None) -> None:
    """Call all receivers of a signal. An error of a receiver is logged, and the others are called.

    Args:
        name: the name of the signal.
        facts: the arguments of the receivers.
        context: the context of the log line.
    """
    for receiver, answer in signal.send_robust(sender=SchedulerExecution, **facts):
        if isinstance(answer, Exception):
            log.error("A receiver of %s raised: %r: %r", name, receiver, answer, extra=context or {})


def send_started(message: TaskMessage, name: str, at: datetime) -> None:
    """Tell that an attempt has started. `name` is that of the target."""
    if _is_wanted(execution_started):
        _after_commit(execution_started, "execution_started", _of_message(message, name) | {"started_at": at})


def send_succeeded(message: TaskMessage, name: str, at: datetime) -> None:
    """Tell that an execution has succeeded. `name` is that of the target."""
    if _is_wanted(execution_succeeded):
        _after_commit(execution_succeeded, "execution_succeeded", _of_message(message, name) | {"finished_at": at})


def send_left_out(message: TaskMessage, name: str, reason: str, at: datetime) -> None:
    """Tell that the handler had nothing to do. `name` is that of the target."""
    if _is_wanted(execution_skipped):
        facts = _of_message(message, name) | {"reason": reason, "missed": 0, "skipped_at": at}
        del facts["attempt"]
        _after_commit(execution_skipped, "execution_skipped", facts)


def send_skipped(rows: Iterable[SchedulerExecution]) -> None:
    """Tell of those of the new rows that are skipped."""
    if not _is_wanted(execution_skipped):
        return
    for row in rows:
        if row.state == State.SKIPPED.value:
            facts = {
                "execution_id": row.pk, "scheduler_id": row.scheduler_id, "type": row.type, "target_id": row.target_id,
                "target_name": row.target_name, "reason": row.reason, "missed": row.missed,
                "skipped_at": row.finished_at,
            }  # fmt: skip
            _after_commit(execution_skipped, "execution_skipped", facts)


def _is_wanted(signal: Signal) -> bool:
    return bool(signal.has_listeners(SchedulerExecution))


def _after_commit(signal: Signal, name: str, facts: dict[str, Any]) -> None:
    transaction.on_commit(lambda: send(signal, name, facts))


def _of_message(message: TaskMessage, name: str) -> dict[str, Any]:
    return {
        "execution_id": message.execution_id, "scheduler_id": message.scheduler_id, "type": message.type,
        "target_id": message.id, "target_name": name, "attempt": message.attempt,
    }  # fmt: skip
