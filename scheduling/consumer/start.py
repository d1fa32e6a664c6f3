"""Starts the attempt that a message asks for, if the execution's row allows the start."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from scheduling.broker import Delivery
from scheduling.core.lifecycle import State
from scheduling.core.messages import TaskMessage
from scheduling.execution import transitions
from scheduling.models import SchedulerExecution
from scheduling.models.execution import MESSAGE_COLUMNS, message_of


@dataclass(frozen=True)
class Arrival:
    """What happened to a message that arrived.

    Args:
        delivery: the delivery. If `started` is true, the message in the delivery was made from the row.
        started: whether the attempt has started. If so, this process owns the attempt.
        foreign: a sentence that says why the message does not belong to the row; empty if the message belongs to it.
    """

    delivery: Delivery
    started: bool
    foreign: str = ""


def begin(delivery: Delivery, consumer: str, now: datetime, lease_until: datetime) -> Arrival:
    """Start the attempt that a message asks for; returns what happened to the message.

    The type, the target and the params of the run always come from the row.

    A message may still name the attempt that failed. Such a message was nacked because the broker did not confirm the
    retry, or it was rejected in the immediate queue. It starts the next attempt if the row's retry is due or if the
    row waits to be published.
    """
    message = delivery.message
    assert message.execution_id is not None  # noqa: S101 - foreign messages get a row first
    if delivery.from_row:
        key = message.execution_key
        started = transitions.start(message.execution_id, message.attempt, key, consumer, now, lease_until)
        return Arrival(delivery, started)
    rows = SchedulerExecution.objects.filter(pk=message.execution_id)
    row: Any = rows.values_list("state", "wake_at", *MESSAGE_COLUMNS, named=True).first()
    if problem := foreign(message, row):
        return Arrival(delivery, started=False, foreign=problem)
    # A copy starts nothing. The row may change after this check, so the compare-and-set in `start` checks it again.
    if not _asks_for_next(message, row, now):
        return Arrival(delivery, started=False)
    own = message_of(row)
    started = transitions.start(row.id, own.attempt, row.execution_key, consumer, now, lease_until)
    return Arrival(replace(delivery, message=own) if started else delivery, started)


def foreign(message: TaskMessage, row: Any) -> str:
    """Say why a message does not belong to the row that it names; empty if the message belongs to the row.

    For example, a new or restored database may give a new row an id that an old message names.
    """
    if row is None:
        return f"It names execution {message.execution_id}, which is not on record."
    if message.execution_key != row.execution_key:
        return f"It names execution {row.id} by another key: {message.execution_key!r}, not {row.execution_key!r}."
    if (message.type, message.id) != (row.type, row.target_id or 0):
        return f"It names execution {row.id}, which is of {row.type} {row.target_id}, as {message.type} {message.id}."
    return ""


def _asks_for_next(message: TaskMessage, row: Any, now: datetime) -> bool:
    if row.attempt == message.attempt - 1:
        return True
    waits = row.state == State.CLAIMED.value or (row.state == State.RETRYING.value and row.wake_at <= now)
    return bool(waits and row.attempt >= message.attempt)
