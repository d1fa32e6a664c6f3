"""Claims due occurrences: inserts an execution row for each due occurrence.

Any number of producers may claim at once. The unique key (scheduler, execution key) refuses a second row for the same
occurrence. With SKIP LOCKED, a producer skips schedules that another producer has locked. So no producer waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from scheduling.conf import get_conf
from scheduling.core import skip_reasons
from scheduling.core.cron import CronError, ZoneError, parse
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.occurrences import Due, Plan, cron_key, date_key, plan_cron, plan_date
from scheduling.execution.due_row import COLUMNS, DueRow, due_row
from scheduling.execution.insert import Names, execution_of, insert, skipped
from scheduling.execution.planning import plan_anew, set_aside
from scheduling.execution.publish import context_of, initial_columns
from scheduling.handlers.targets import target_names
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution, UncountedSkip
from scheduling.models.plan import FIRST_INSTANT, PlanState
from scheduling.policies import overlap
from scheduling.processes import left_out
from scheduling.processes.database import is_away
from scheduling.processes.guard import guard
from scheduling.processes.prepared import Prepared

log = get_logger(__name__)

SCHEDULES_PER_BATCH = 1000


@dataclass
class Dispatched:
    """The result of claiming one batch.

    Args:
        claimed: the new executions, which the caller publishes.
        skipped: how many skipped executions were recorded.
        broken: how many schedules were set aside.
        full: whether the batch was full, so that more schedules may be due.
    """

    claimed: list[SchedulerExecution] = field(default_factory=list)
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


def next_due() -> datetime | None:
    """The earliest `next_run_at` of all schedules; None if no schedule has one.

    The query is one index look-up, for any number of schedules.
    """
    rows = _schedules().filter(next_run_at__gte=FIRST_INSTANT).order_by("next_run_at")
    try:
        found = list(rows.values_list("next_run_at", flat=True)[:1])
    except Exception as error:
        if is_away(error):
            raise
        found = [None]
    if found == [None]:
        # Python cannot read the value of a row. (Of some texts in SQLite, Django makes None.) A claim must run now,
        # because the claim sets this row aside.
        return FIRST_INSTANT
    return found[0] if found else None


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
        done.skipped += one.skipped
        done.broken += one.broken
    return done


def _claim(rows: Sequence[DueRow], now: datetime, embedded: bool, done: Dispatched) -> None:
    guard.check()
    planned = _planned(rows, now, done)
    names = target_names({(row.target_type, row.target_id) for row, _ in planned})
    due = [row for row, plan in planned if plan.run is not None]
    held = overlap.hold(due, now)
    done.skipped += held.counted
    UncountedSkip.objects.note(_counted_again(planned, names, now, held))
    made = [execution for row, plan in planned for execution in _executions(row, plan, names, now, embedded, held)]
    inserted = insert(made)
    for execution in inserted:
        if execution.state == State.SKIPPED.value:
            done.skipped += 1
        else:
            done.claimed.append(execution)
    overlap.note(due, inserted)
    move_on(planned)


def _counted_again(
    planned: Iterable[tuple[DueRow, Plan]], names: Names, now: datetime, held: overlap.Held
) -> list[SchedulerExecution]:
    """The occurrences that earlier skipped executions count, for the tallies. They get no rows."""
    return [
        execution_of(row, now, names, **skipped(now, skip_reasons.left_out(held.by[row.id], row.stay_alive), missed=1))
        for row, _plan in planned if row.id in held.on_record
    ]  # fmt: skip


def _planned(rows: Sequence[DueRow], now: datetime, done: Dispatched) -> list[tuple[DueRow, Plan]]:
    """The rows that can be planned, with their plans. A row that cannot be planned is set aside and counted."""
    plans: dict[tuple[Any, ...], Plan] = {}
    planned: list[tuple[DueRow, Plan]] = []
    for row in rows:
        if row.plan_state == PlanState.STALE and row.status:
            # Plain SQL has changed the schedule, and no sweep has planned it since. The next claim uses the new plan.
            plan_anew([row.id], now)
            continue
        try:
            planned.append((row, _plan(row, now, plans)))
        except (CronError, ZoneError) as error:
            set_aside(row.id, error, now)
            done.broken += 1
    return planned


def move_on(planned: Sequence[tuple[DueRow, Plan]]) -> None:
    """Set `next_run_at` of schedules whose due occurrences have been inserted."""
    moved: dict[datetime | None, list[int]] = defaultdict(list)
    finished: list[int] = []
    if off := [row.id for row, _plan in planned if not row.status]:
        # If plain SQL has paused the schedule, its pause begins with this occurrence. No sweep has seen the pause yet.
        since = {"paused_at": Coalesce("paused_at", F("next_run_at")), "planned_status": False}
        Scheduler.objects.filter(pk__in=off).update(**since)
    for row, plan in planned:
        if row.date_time is not None and row.status and plan.next_run_at is None:
            finished.append(row.id)
        else:
            moved[plan.next_run_at].append(row.id)
    for instant, ids in moved.items():
        Scheduler.objects.filter(pk__in=ids).update(next_run_at=instant)
    if finished:
        # A one-time schedule is paused after its occurrence.
        Scheduler.objects.filter(pk__in=finished).update(next_run_at=None, status=False, planned_status=False)


def _plan(row: DueRow, now: datetime, plans: dict[tuple[Any, ...], Plan]) -> Plan:
    if not row.status:
        return Plan(run=None, missed=None, next_run_at=None)
    conf = get_conf()
    zone_name = row.timezone or conf.timezone
    catch_up = timedelta(seconds=conf.catch_up_seconds)
    if row.date_time is not None and row.date_time != row.next_run_at:
        # The schedule had a cron expression when this occurrence fell due. Before a producer claimed the occurrence, an
        # operator replaced the expression with a date.
        return Plan(run=Due(row.next_run_at, cron_key(row.next_run_at)), missed=None, next_run_at=row.date_time)
    key = (row.schedule, row.date_time, zone_name, row.next_run_at)
    if key not in plans:
        plans[key] = (
            plan_date(row.date_time, now, catch_up)
            if row.date_time is not None
            else plan_cron(parse(row.schedule), zone_name, row.next_run_at, now, catch_up)
        )
    return plans[key]


def _executions(
    row: DueRow, plan: Plan, names: Names, now: datetime, embedded: bool, held: overlap.Held
) -> Iterable[SchedulerExecution]:
    trigger = Trigger.DATE if row.date_time is not None else Trigger.CRON

    def execution(key: str, instant: datetime, columns: dict[str, Any]) -> SchedulerExecution:
        return execution_of(row, now, names, execution_key=key, scheduled_at=instant, trigger=trigger.value, **columns)

    if not row.status:
        instant = row.next_run_at
        key = date_key(instant) if row.date_time is not None else cron_key(instant)
        yield execution(key, instant, skipped(now, skip_reasons.SWITCHED_OFF))
        return
    if (missed := plan.missed) is not None:
        yield execution(missed.key, missed.first, skipped(now, missed.reason, missed.count))
    if plan.run is None:
        return
    if row.id in held.on_record:
        return
    opened = held.by.get(row.id)
    if opened is None:
        yield execution(plan.run.key, plan.run.instant, initial_columns(now, embedded))
        return
    columns = skipped(now, skip_reasons.left_out(opened, row.stay_alive), missed=1)
    yield execution(plan.run.key, plan.run.instant, columns)
