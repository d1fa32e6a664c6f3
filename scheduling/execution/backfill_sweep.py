"""The producers' sweep of backfills: make the executions of their instants in small batches, at their rate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from scheduling.broker import Broker
from scheduling.core import run_sentences as say
from scheduling.core.backfill import Standing, read, standing, step_of
from scheduling.core.lifecycle import Trigger
from scheduling.core.occurrences import backfill_key
from scheduling.core.replay import due
from scheduling.core.text import clean
from scheduling.core.wait_sentences import WAITS_FOR_RUN
from scheduling.execution.backfill_record import on_record
from scheduling.execution.insert import execution_of, insert
from scheduling.execution.publish import initial_columns, publish
from scheduling.logs import get_logger
from scheduling.models import Backfill, Scheduler, SchedulerExecution
from scheduling.models.backfill import OPEN
from scheduling.models.prepared import any_of
from scheduling.policies import overlap
from scheduling.processes.database import is_away, locking

log = get_logger(__name__)

NOTE_LIMIT = 500
DELETED = say.BACKFILL_DELETED.format()
SERVICE = say.BACKFILL_SERVICE.format()
WAITS = timedelta(seconds=2)
"""After so long, a backfill that waits for the end of a run looks again."""


class Impossible(Exception):
    """The backfill cannot go on. The text says why."""


class SweepLimits:
    """How much one round of the sweep may do."""

    instants_per_step = 100
    """One transaction looks at no more instants, and makes no more executions."""
    backfills_per_round = 50
    seconds = 0.5
    """The maximum time of one round. Due schedules wait during this time, so the limit is short."""


@dataclass
class _Step:
    """What one transaction does with the next instants of a backfill."""

    wanted: list[datetime] = field(default_factory=list)
    """The instants for which an execution is made."""
    existing: int = 0
    waits_for: str = ""


def _due(now: datetime) -> QuerySet[Backfill]:
    return Backfill.objects.filter(state=Backfill.State.RUNNING.value, next_at__lte=now)


ANY_DUE = any_of(lambda now: _due(now).order_by("state", "next_at"))


def sweep(broker: Broker, now: datetime) -> int:
    """Make one round over the backfills that are due, within `SweepLimits`. Returns how many executions were made."""
    if not ANY_DUE.rows(now):
        return 0
    rows = _due(now).order_by("next_at", "pk")
    left = list(rows.values_list("pk", "scheduler")[: SweepLimits.backfills_per_round])
    count, until = 0, time.monotonic() + SweepLimits.seconds
    # The backfills take turns, so that a long one does not delay the others.
    while left:
        for pk, schedule in list(left):
            made = _step(pk, schedule, broker, now)
            if made is None:
                left.remove((pk, schedule))
            count += made or 0
            if time.monotonic() > until:
                return count
    return count


def end(pk: int, state: Backfill.State, note: str, now: datetime) -> bool:
    """Cancel or stop a backfill that is not over. What it has made stays. Returns False if it was over already."""
    ended = Backfill.objects.filter(pk=pk, state__in=OPEN).update(
        state=state.value, note=clean(note, NOTE_LIMIT), finished_at=now, next_at=None
    )
    if ended:
        log.warning("Backfill %s is %s: %s", pk, state.value, note)
    return bool(ended)


def _step(pk: int, schedule: int | None, broker: Broker, now: datetime) -> int | None:
    """Make one batch of a backfill. Returns how many executions were made; None if it has to wait or is over."""
    try:
        with transaction.atomic():
            made = _advance(pk, schedule, broker, now)
    except Exception as error:
        if is_away(error):
            raise
        _stop(pk, error, now)
        return None
    if made is None:
        return None
    publish(made, broker)  # a row whose message is not confirmed stays claimed, and a sweep publishes it again
    return len(made)


def _stop(pk: int, error: Exception, now: datetime) -> None:
    """Stop a backfill that cannot go on, so that the others do. If the database refuses it, the next round tries."""
    said = (
        str(error)
        if isinstance(error, Impossible)
        else say.CANNOT_GO_ON.format(error=f"{type(error).__name__}: {error}")
    )
    try:
        with transaction.atomic():
            end(pk, Backfill.State.STOPPED, said, now)
    except Exception as refused:
        if is_away(refused):
            raise
        log.error("Backfill %s cannot go on and cannot be stopped: %s", pk, refused)


def _advance(pk: int, schedule: int | None, broker: Broker, now: datetime) -> Sequence[SchedulerExecution] | None:
    # The schedule is locked first, as a deletion of the schedule does. So the two never wait for each other. A claim
    # locks it, too: whether the occurrence itself is on record does not change until this transaction ends.
    scheduler = locking(Scheduler.objects.filter(pk=schedule or 0)).first()
    rows = Backfill.objects.filter(pk=pk, state=Backfill.State.RUNNING.value)
    row = rows.select_for_update(skip_locked=True).first()
    if row is None or row.next_at is None or row.next_at > now:
        return None
    if scheduler is None:
        raise Impossible(DELETED)
    if scheduler.stay_alive:
        raise Impossible(SERVICE)
    limit = SweepLimits.instants_per_step
    instants = read(row.instants)
    left = instants[row.position :]
    count, _next_at = due(row.next_at, step_of(row.per_minute), len(left), now, limit)
    step, alone = _Step(), overlap.locked(scheduler.pk) if row.obey_overlap else None
    if alone is not None:
        count = min(count, 1)
        opened = overlap.open_runs([alone]).get(scheduler.pk)
        step.waits_for = "" if opened is None else WAITS_FOR_RUN.format(execution=opened)
    _choose(step, row, scheduler.pk, left[:limit], 0 if step.waits_for else count)
    made = _insert(step, row, scheduler, broker, now)
    if alone is not None and made:
        overlap.let_in({scheduler.pk: made[0].pk})
    columns = _columns(row, step, len(made), len(instants), now)
    # Some databases have no row locks. So a compare-and-set changes the position. Only the process that changed it has
    # made these executions.
    if not rows.filter(position=row.position).update(**columns):
        transaction.set_rollback(True)
        return None
    return made if made or step.existing else None


def _choose(step: _Step, row: Backfill, schedule: int, window: Sequence[datetime], count: int) -> None:
    """Take instants from the beginning of the window, until so many executions are wanted as may be made now."""
    known = on_record(schedule, window)
    for instant in window:
        found = standing(ran=instant in known.ran, made=instant in known.made, also_ran=row.also_ran)
        if found is not Standing.NEW:
            step.existing += 1
        elif len(step.wanted) < count:
            step.wanted.append(instant)
        else:
            return


def _insert(
    step: _Step, row: Backfill, scheduler: Scheduler, broker: Broker, now: datetime
) -> Sequence[SchedulerExecution]:
    reason = say.made_by_backfill(row.pk, row.requested_by, row.reason)
    made = [
        execution_of(
            scheduler, now, execution_key=backfill_key(instant), scheduled_at=instant, trigger=Trigger.BACKFILL.value,
            requested_by=row.requested_by, reason=reason, **initial_columns(now, broker.embedded),
        )
        for instant in step.wanted
    ]  # fmt: skip
    return insert(made) if made else []


def _columns(row: Backfill, step: _Step, made: int, total: int, now: datetime) -> dict[str, Any]:
    position = row.position + len(step.wanted) + step.existing
    count = len(step.wanted)
    _count, next_at = due(row.next_at or now, step_of(row.per_minute), count, now, count)
    columns: dict[str, Any] = {
        "position": position, "created": row.created + made,
        "existing": row.existing + step.existing + len(step.wanted) - made, "note": step.waits_for,
        "next_at": max(next_at, now + WAITS) if step.waits_for else next_at,
    }  # fmt: skip
    if position >= total:
        columns |= {"state": Backfill.State.DONE.value, "finished_at": now, "next_at": None, "note": ""}
    return columns
