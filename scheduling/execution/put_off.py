"""Puts off attempts that are about to start: their rows say why they wait, and when they are offered again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Case, TextField, Value, When
from django.db.models.functions import Coalesce

from scheduling.core.chunks import chunks
from scheduling.core.lifecycle import WAITING, State
from scheduling.models import SchedulerExecution
from scheduling.processes.database import locking

TOGETHER = 100
"""So many rows are written together. Each has parameters of its own."""


class Wait(NamedTuple):
    """An attempt that is not to start now.

    Args:
        pk: the execution.
        attempt: the number of its last attempt.
        reason: why it waits.
        offered_at: when it is offered again.
        deferred_at: since when it has been put off.
    """

    pk: int
    attempt: int
    reason: str
    offered_at: datetime
    deferred_at: datetime


def put_off(waits: Sequence[Wait], now: datetime, *, embedded: bool) -> set[int]:
    """Put attempts off. Returns their executions, without those that another process has started or ended meanwhile.

    Args:
        embedded: whether the executions table is the queue.
    """
    to = State.QUEUED if embedded else State.CLAIMED
    if len(waits) == 1:
        return {wait.pk for wait in waits if _put_off_one(wait, to, now)}
    moved: set[int] = set()
    for own in chunks(sorted(waits), TOGETHER):
        with transaction.atomic(savepoint=False):
            moved |= _put_off_many({wait.pk: wait for wait in own}, to, now)
    return moved


def _put_off_one(wait: Wait, to: State, now: datetime) -> bool:
    rows = SchedulerExecution.objects.filter(pk=wait.pk, attempt=wait.attempt)
    columns = _columns(wait, Value(wait.reason), now)
    return bool(rows.in_state(to).update(**columns) or rows.move(WAITING - {to}, to, **columns))


def _put_off_many(waits: dict[int, Wait], to: State, now: datetime) -> set[int]:
    """Lock the rows, and write those that wait with one statement for all that have the same instants."""
    rows = locking(SchedulerExecution.objects.in_state(*WAITING).filter(pk__in=list(waits)).order_by("pk"))
    alike: dict[tuple[State, datetime, datetime], list[Wait]] = defaultdict(list)
    for pk, attempt, state in rows.values_list("pk", "attempt", "state"):
        wait = waits[pk]
        if attempt == wait.attempt:
            alike[State(state), wait.offered_at, wait.deferred_at].append(wait)
    for (state, *_instants), own in alike.items():
        reasons = {wait.reason for wait in own}
        reason: Any = Value(own[0].reason)
        if len(reasons) > 1:
            reason = Case(*[When(pk=wait.pk, then=Value(wait.reason)) for wait in own], output_field=TextField())
        found = SchedulerExecution.objects.filter(pk__in=[wait.pk for wait in own])
        columns = _columns(own[0], reason, now)
        if state is to:
            found.update(**columns)
        else:
            found.move({state}, to, **columns)
    return {wait.pk for own in alike.values() for wait in own}


def _columns(wait: Wait, reason: Any, now: datetime) -> dict[str, Any]:
    # `published_at` says that the message has arrived: no late confirm of it may move the row.
    published_at = Coalesce("published_at", Value(now))
    columns = {"wake_at": wait.offered_at, "deferred_at": wait.deferred_at, "published_at": published_at}
    return columns | {"reason": reason}
