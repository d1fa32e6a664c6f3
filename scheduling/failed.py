"""The failed inbox: nothing leaves it but by an operator's action or a retention rule.

Republish and discard change the row first, by a compare-and-set, so that a second click does
nothing; the broker is told afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.core.lifecycle import State, Trigger
from scheduling.dispatch import publish, run_again
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.parked import read_again, take_out

log = get_logger(__name__)


def republish(
    ids: Iterable[int],
    broker: Broker,
    by: str,
    now: datetime | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    attempt: int | None = None,
    first: datetime | None = None,
    step: timedelta = timedelta(0),
) -> list[int]:
    """Run failed executions again, with the retry count at zero; attempts go on counting.

    Args:
        by: who asked, for the record.
        params: for a single execution: run it with these in place of its own.
        attempt: for a single execution: only if this attempt of it is still the last one.
        first: when the first of them may start, instead of at once; each further one `step` later.

    Returns:
        The ids that were republished; another operator may have been faster with the others.

    Raises:
        ValueError: params or an attempt for other than one execution.
    """
    ids = list(ids)
    if len(ids) != 1 and not (params is None and attempt is None):
        raise ValueError("Parameters and an attempt are those of one execution: give one id.")
    now = now or clock.now()
    reason = f"Republished by {by}." if params is None else f"Republished by {by}, with edited parameters."
    done: list[SchedulerExecution] = []
    at = first
    for row in _rows(ids):
        if attempt is not None and row.attempt != attempt:
            continue  # it failed again since somebody looked at it
        if not row.type and (params is not None or not read_again(row)):
            continue  # a message that cannot be read cannot be run
        said = reason if at is None else f"{reason} It starts at {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC."
        with transaction.atomic():
            if run_again(row.pk, broker, said, now, params, at, attempt=row.attempt):
                done.append(row)
                at = at + step if at is not None else None
    if done:
        if first is None:  # else the sweep publishes each when its time has come
            send(done, broker)
        log.info("Republished %s failed executions", len(done), extra={"by": by})
        # Last: until the new message is confirmed, the parked one is what the broker has of it.
        take_out_parked(broker, done)
    return [row.pk for row in done]


def move(attempts: Mapping[int, int], broker: Broker, reason: str, now: datetime) -> list[SchedulerExecution]:
    """Republish in the caller's transaction, those that still stand in the inbox with this attempt as their
    last; after the commit the caller has to `send` them. A crash in between is mended by the sweep of claims."""
    return [
        row
        for row in _rows(attempts)
        if row.attempt == attempts[row.pk]
        and (row.type or read_again(row))
        and run_again(row.pk, broker, reason, now, attempt=row.attempt)
    ]


def send(rows: Iterable[SchedulerExecution], broker: Broker) -> None:
    """Publish what was moved; the sync pass takes their parked messages out of the failed queue."""
    pks = [row.pk for row in rows]
    publish(list(SchedulerExecution.objects.filter(pk__in=pks, state=State.CLAIMED.value)), broker)


def discard(
    ids: Iterable[int], by: str, reason: str, now: datetime | None = None, broker: Broker | None = None
) -> list[int]:
    """Drop failed executions from the inbox; the rows stay, with the reason, until retention.

    Args:
        broker: where their messages are parked; without it the next sync pass takes them out.

    Raises:
        ValueError: without a reason.
    """
    if not reason.strip():
        raise ValueError("Say why it is discarded: the next person will ask.")
    now = now or clock.now()
    text = f"Discarded by {by}: {reason.strip()}"[:2000]
    done = [
        row
        for row in _rows(ids)
        if SchedulerExecution.objects.filter(pk=row.pk, state=State.FAILED.value).update(
            state=State.DISCARDED.value, reason=text, finished_at=now
        )
    ]
    if done:
        log.info("Discarded %s failed executions", len(done), extra={"by": by})
        if broker is not None:
            take_out_parked(broker, done)
    return [row.pk for row in done]


def _rows(ids: Iterable[int]) -> list[SchedulerExecution]:
    return list(SchedulerExecution.objects.filter(pk__in=list(ids), state=State.FAILED.value).order_by("pk"))


def take_out_parked(broker: Broker, rows: list[SchedulerExecution]) -> None:
    """Take the parked messages of rows that left the inbox out of the failed queue."""
    foreign = [row.execution_key for row in rows if row.trigger == Trigger.MESSAGE.value]
    take_out(broker, {row.pk: row.attempt for row in rows}, foreign)
