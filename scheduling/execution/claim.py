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

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from scheduling.conf import get_conf
from scheduling.core import skip_reasons
from scheduling.core.chunks import chunks
from scheduling.core.cron import CronError, ZoneError
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.occurrences import Due, Plan, cron_key, date_key, plan_cron, plan_date
from scheduling.core.overlap import Turn, turn
from scheduling.core.planned import first_plan
from scheduling.core.planned import plan as plan_own
from scheduling.core.timing import Exclusions
from scheduling.execution.after_runs import columns_at_claim
from scheduling.execution.blocked_runs import arrange, blocked_columns
from scheduling.execution.due_row import COLUMNS, DueRow, due_row
from scheduling.execution.insert import Names, execution_of, insert, skipped
from scheduling.execution.planning import plan_anew, set_aside
from scheduling.execution.publish import context_of
from scheduling.execution.revisions import note_found
from scheduling.execution.rule_pauses import count_runs, runs_left
from scheduling.execution.start_deadlines import deadline_of, expired_columns
from scheduling.handlers.targets import target_names
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution, StartDeadline, UncountedSkip
from scheduling.models.exclusions import exclusions_of
from scheduling.models.own_timing import assigned_of, has_own_timing
from scheduling.models.plan import FIRST_INSTANT, PlanState
from scheduling.models.timetable import timetable_of
from scheduling.policies import overlap
from scheduling.processes import left_out
from scheduling.processes.database import is_away
from scheduling.processes.guard import guard
from scheduling.processes.prepared import Prepared

log = get_logger(__name__)

SCHEDULES_PER_BATCH = 1000
MOVED_PER_UPDATE = 150
RUNS_PER_BATCH = 5000
"""When a batch has so many executions, no further schedule is claimed with it."""


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
        done.blocked += one.blocked
        done.skipped += one.skipped
        done.broken += one.broken
    return done


def _claim(rows: Sequence[DueRow], now: datetime, embedded: bool, done: Dispatched) -> None:
    guard.check()
    planned = _planned(rows, now, done)
    for row, _plan_of_row in planned:
        if not row.status:  # plain SQL may have paused it
            note_found(row.id, now)
    names = target_names({(row.target_type, row.target_id) for row, _ in planned})
    due = [row for row, plan in planned if plan.run is not None and not _have_expired(row, plan, now)]
    held = overlap.hold(due, now)
    done.skipped += held.counted
    UncountedSkip.objects.note(_counted_again(planned, names, now, held))
    made = [execution for row, plan in planned for execution in _executions(row, plan, names, now, embedded, held)]
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


def _have_expired(row: DueRow, plan: Plan, now: datetime) -> bool:
    return all(expired_columns(row, due.assigned or due.instant, now) is not None for due in plan.runs)


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
    own = {row.id for row in rows if has_own_timing(row)}
    calendars = exclusions_of(row for row in rows if row.id in own) if own else {}
    runs = 0
    for row in rows:
        if runs >= RUNS_PER_BATCH:
            done.full = True  # the others stay due
            break
        if row.plan_state == PlanState.STALE and row.status:
            # Plain SQL has changed the schedule, and no sweep has planned it since. The next claim uses the new plan.
            plan_anew([row.id], now)
            continue
        try:
            found = _own_plan(row, now, calendars.get(row.id)) if row.id in own else _plan(row, now, plans)
            runs += len(found.earlier) + 1
            planned.append((row, found))
        except (CronError, ZoneError) as error:
            set_aside(row.id, error, now)
            done.broken += 1
    return planned


def move_on(planned: Sequence[tuple[DueRow, Plan]]) -> None:
    """Set `next_run_at` of schedules whose due occurrences have been inserted."""
    moved: list[tuple[int, datetime | None, datetime | None]] = []
    plain: dict[datetime | None, list[int]] = defaultdict(list)
    finished: list[int] = []
    if off := [row.id for row, _plan in planned if not row.status]:
        # If plain SQL has paused the schedule, its pause begins with this occurrence. No sweep has seen the pause yet.
        first = Coalesce("paused_at", "next_nominal_at", F("next_run_at"))
        since = {"paused_at": first, "planned_status": False}
        Scheduler.objects.filter(pk__in=off).update(**since)
    for row, plan in planned:
        if row.date_time is not None and row.status and plan.next_run_at is None:
            finished.append(row.id)
        elif row.next_nominal_at is None and plan.next_nominal_at is None:
            plain[plan.next_run_at].append(row.id)
        else:
            moved.append((row.id, plan.next_run_at, plan.next_nominal_at))
    for instant, ids in plain.items():
        Scheduler.objects.filter(pk__in=ids).update(next_run_at=instant)
    _move_own(moved)
    if finished:
        # A one-time schedule is paused after its occurrence.
        none = {"next_run_at": None, "next_nominal_at": None}
        Scheduler.objects.filter(pk__in=finished).update(**none, status=False, planned_status=False)


def _move_own(moved: Sequence[tuple[int, datetime | None, datetime | None]]) -> None:
    """Set both instants of schedules with rules of their own. Few of them share them, so one statement sets many.

    Django would need longer for the expressions of such a statement than the database for its execution.
    """
    table = connection.ops.quote_name(Scheduler._meta.db_table)
    adapted: Any = connection.ops.adapt_datetimefield_value
    for some in chunks(moved, MOVED_PER_UPDATE):
        parts, values = list[str](), list[Any]()
        for place, name in ((1, "next_run_at"), (2, "next_nominal_at")):
            known = [(one[0], one[place]) for one in some if one[place] is not None]
            whens = "".join(" WHEN %s THEN %s" for _one in known)
            column = connection.ops.quote_name(name)
            parts.append(f"{column} = CASE id{whens} END" if known else f"{column} = NULL")
            for pk, instant in known:
                values += [pk, adapted(instant)]
        keys = [one[0] for one in some]
        marks = ", ".join(["%s"] * len(keys))
        statement = f"UPDATE {table} SET {', '.join(parts)} WHERE id IN ({marks})"  # noqa: S608 - names of columns
        with connection.cursor() as cursor:
            cursor.execute(statement, [*values, *keys])


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
            else plan_cron(timetable_of(row.schedule), zone_name, row.next_run_at, now, catch_up)
        )
    return plans[key]


def _own_plan(row: DueRow, now: datetime, excluded: Exclusions | None) -> Plan:
    """The plan of a schedule with rules of its own."""
    if not row.status:
        return Plan(run=None, missed=None, next_run_at=None)
    own = assigned_of(row, excluded)
    if row.date_time is not None and row.date_time != row.first:
        # As in `_plan`: a date has replaced the expression.
        following = first_plan(own, now)
        run = Due(row.first, cron_key(row.first), row.next_run_at)
        return Plan(run=run, missed=None, next_run_at=following[0], next_nominal_at=following[1])
    return plan_own(own, row.first, now)


def _executions(
    row: DueRow, plan: Plan, names: Names, now: datetime, embedded: bool, held: overlap.Held
) -> Iterable[SchedulerExecution]:
    trigger = Trigger.DATE if row.date_time is not None else Trigger.CRON

    def execution(key: str, instant: datetime, columns: dict[str, Any]) -> SchedulerExecution:
        return execution_of(row, now, names, execution_key=key, scheduled_at=instant, trigger=trigger.value, **columns)

    if not row.status:
        instant = row.first
        key = date_key(instant) if row.date_time is not None else cron_key(instant)
        yield execution(key, instant, skipped(now, skip_reasons.SWITCHED_OFF))
        return
    for missed in plan.all_missed:
        yield execution(missed.key, missed.first, skipped(now, missed.reason, missed.count))
    if row.id in held.on_record:
        return
    opened, left = held.by.get(row.id), runs_left(row)
    for due in plan.runs:
        start = due.assigned or due.instant
        columns = _columns(row, start, now, embedded, opened)
        if columns["state"] != State.SKIPPED.value:
            if left is not None and left <= 0:
                columns = skipped(now, skip_reasons.SWITCHED_OFF, missed=1)
            left = None if left is None else left - 1
        yield execution(due.key, due.instant, {**columns, "assigned_at": start} if start != due.instant else columns)


def _columns(row: DueRow, due_at: datetime, now: datetime, embedded: bool, opened: int | None) -> dict[str, Any]:
    """The columns of the occurrence that may run.

    Args:
        opened: the id of the execution of the schedule that is not over, or that waits for its turn.
    """
    if (columns := expired_columns(row, due_at, now)) is not None:
        return columns
    found = turn(row.overlap, row.stay_alive, opened is not None)
    if opened is not None and found is Turn.LEFT_OUT:
        return skipped(now, skip_reasons.left_out(opened, row.stay_alive), missed=1)
    waits = opened is not None and found is Turn.WAITS
    columns = blocked_columns(now, opened or 0, row.overlap) if waits else columns_at_claim(row, now, embedded)
    return columns if (by := deadline_of(row, due_at)) is None else columns | {"start_by": by}
