"""Claims due occurrences: inserts an execution row for each due occurrence.

Any number of producers may claim at once. The unique key (scheduler, execution key) refuses a second row for the same
occurrence. With SKIP LOCKED, a producer skips schedules that another producer has locked. So no producer waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from scheduling.core.lifecycle import State
from scheduling.core.words import in_english
from scheduling.execution.blocked_runs import arrange
from scheduling.execution.due_executions import counted_again, executions_of, have_expired
from scheduling.execution.due_plans import plan_due
from scheduling.execution.due_row import COLUMNS, DueRow, due_row
from scheduling.execution.insert import insert
from scheduling.execution.move_on import move_on
from scheduling.execution.planning import set_aside
from scheduling.execution.publish import context_of
from scheduling.execution.revisions import note_found
from scheduling.execution.rule_pauses import count_runs
from scheduling.handlers.targets import target_names
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution, StartDeadline, UncountedSkip
from scheduling.models.plan import FIRST_INSTANT
from scheduling.models.prepared import Prepared
from scheduling.policies import overlap
from scheduling.processes import left_out
from scheduling.processes.database import is_away
from scheduling.processes.guard import guard

log = get_logger(__name__)

SCHEDULES_PER_BATCH = 1000


@dataclass
class Dispatched:
    """The result of claiming one batch.

    Args:
        claimed: the new executions, which the caller publishes.
        blocked: the new executions that may have to wait for a predecessor (`execution.after_runs.look`).
        skipped: how many skipped executions were recorded.
        broken: how many schedules were set aside.
        full: whether the batch was full, so that more schedules may be due.
    """

    claimed: list[SchedulerExecution] = field(default_factory=list)
    blocked: list[int] = field(default_factory=list)
    skipped: int = 0
    broken: int = 0
    full: bool = False


def _schedules() -> QuerySet[Scheduler]:
    return left_out.schedules.without(Scheduler.objects.all())


def _due(now: datetime, limit: int) -> QuerySet[Scheduler, tuple[Any, ...]]:
    due = _schedules().filter(next_run_at__lte=now).order_by("next_run_at", "id")
    return due.select_for_update(skip_locked=True).values_list(*COLUMNS)[:limit]


@lru_cache(maxsize=8)
def _all_due(limit: int) -> Prepared:
    """The query for the schedules that are due, if none is left out."""
    return Prepared(lambda now: _due(now, limit))


def _earliest() -> QuerySet[Scheduler, tuple[Any, ...]]:
    rows = _schedules().filter(next_run_at__gte=FIRST_INSTANT).order_by("next_run_at")
    return rows.values_list("next_run_at")[:1]


_EARLIEST = Prepared(lambda _now: _earliest())
"""The query of `_earliest`, if no schedule is left out."""


def next_due() -> datetime | None:
    """The earliest `next_run_at` of all schedules; None if no schedule has one.

    The query is one index look-up, for any number of schedules.
    """
    try:
        found = [at for (at,) in (_earliest() if left_out.schedules.keys() else _EARLIEST.rows())]
    except Exception as error:
        if is_away(error):
            raise
        found = [None]
    if found == [None]:
        # Python cannot read the value of a row. (Of some texts in SQLite, Django makes None.) A claim must run now,
        # because the claim sets this row aside.
        return FIRST_INSTANT
    return found[0] if found else None


@in_english()
def claim_due(now: datetime, *, embedded: bool, limit: int = SCHEDULES_PER_BATCH) -> Dispatched:
    """Claim one batch of due occurrences. The caller then publishes the executions.

    The batch is one transaction. If the transaction fails because of one row, the rows are claimed one by one, and the
    row that fails is set aside.

    Raises:
        django.db.DatabaseError: the database cannot be reached or is not migrated.
        Held: something is due, but nothing may be claimed.
    """
    try:
        done = _claim_batch(now, embedded, limit)
    except Exception as error:
        if is_away(error):
            raise
        done = _claim_one_by_one(now, embedded, limit)
    for execution in done.claimed:
        log.debug("Claimed", extra=context_of(execution))
    return done


def _claim_batch(now: datetime, embedded: bool, limit: int) -> Dispatched:
    done = Dispatched()
    with transaction.atomic():
        locked = _due(now, limit) if left_out.schedules.keys() else _all_due(limit).rows(now)
        rows = [due_row(values) for values in locked]
        done.full = len(rows) == limit
        if rows:
            _claim(rows, now, embedded, done)
    return done


def _claim_one_by_one(now: datetime, embedded: bool, limit: int) -> Dispatched:
    done = Dispatched()
    due = _schedules().filter(next_run_at__lte=now).order_by("next_run_at", "id")
    keys = list(due.values_list("pk", flat=True)[:limit])
    done.full = len(keys) == limit
    for pk in keys:
        one = Dispatched()
        try:
            with transaction.atomic():
                own = Scheduler.objects.filter(pk=pk, next_run_at__lte=now).select_for_update(skip_locked=True)
                _claim([due_row(values) for values in own.values_list(*COLUMNS)], now, embedded, one)
        except Exception as error:
            if is_away(error):
                raise
            set_aside(pk, error, now)
            one = Dispatched(broken=1)
        done.claimed += one.claimed
        done.blocked += one.blocked
        done.skipped += one.skipped
        done.broken += one.broken
    return done


def _claim(rows: Sequence[DueRow], now: datetime, embedded: bool, done: Dispatched) -> None:
    guard.check()
    plans = plan_due(rows, now)
    planned = plans.rows
    done.broken += plans.broken
    done.full = done.full or plans.full
    for row, _plan_of_row in planned:
        if not row.status:  # plain SQL may have paused it
            note_found(row.id, now)
    names = target_names({(row.target_type, row.target_id) for row, _ in planned})
    due = [row for row, plan in planned if plan.run is not None and not have_expired(row, plan, now)]
    held = overlap.hold(due, now)
    done.skipped += held.counted
    UncountedSkip.objects.note(counted_again(planned, names, now, held))
    made = [execution for row, plan in planned for execution in executions_of(row, plan, names, now, embedded, held)]
    inserted = insert(made)
    for execution in inserted:
        if execution.state == State.SKIPPED.value:
            done.skipped += 1
        elif execution.state != State.BLOCKED.value:
            done.claimed.append(execution)
        elif execution.waits_for is not None:
            done.blocked.append(execution.pk)
    overlap.note(due, inserted)
    done.claimed += arrange(due, inserted, now, embedded=embedded)
    StartDeadline.objects.note(inserted)
    move_on(planned)
    count_runs(due, inserted, now)
