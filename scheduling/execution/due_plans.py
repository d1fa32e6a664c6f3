"""Plans the schedules that are due: what runs, what was missed, and when each is due next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from scheduling.conf import get_conf
from scheduling.core import skip_reasons
from scheduling.core.cron import CronError, ZoneError, zone
from scheduling.core.occurrences import Due, Missed, Plan, cron_key, plan_cron, plan_date
from scheduling.core.planned import first_plan
from scheduling.core.planned import plan as plan_own
from scheduling.core.timing import Exclusions, MissedRuns
from scheduling.execution.due_row import DueRow
from scheduling.execution.planning import plan_anew, set_aside
from scheduling.models.exclusions import exclusions_of
from scheduling.models.own_timing import TIMING_COLUMNS, assigned_of, has_own_timing
from scheduling.models.plan import PlanState
from scheduling.models.timetable import timetable_of

RUNS_PER_BATCH = 5000
"""When a batch has so many executions, no further schedule is claimed with it."""


@dataclass
class DuePlans:
    """The plans of one batch.

    Args:
        rows: the schedules that can be planned, with their plans.
        broken: how many schedules were set aside, because they cannot be planned.
        full: whether schedules were left for the next batch.
    """

    rows: list[tuple[DueRow, Plan]] = field(default_factory=list)
    broken: int = 0
    full: bool = False


def plan_due(rows: Sequence[DueRow], now: datetime) -> DuePlans:
    """Plan the schedules that are due. A schedule that cannot be planned is set aside."""
    plans: dict[tuple[Any, ...], Plan] = {}
    planned = DuePlans()
    own = {row.id for row in rows if has_own_timing(row)}
    calendars = exclusions_of(row for row in rows if row.id in own) if own else {}
    runs = 0
    for row in rows:
        if runs >= RUNS_PER_BATCH:
            planned.full = True  # the others stay due
            break
        if row.plan_state == PlanState.STALE and row.status:
            # Plain SQL has changed the schedule, and no sweep has planned it since. The next claim uses the new plan.
            plan_anew([row.id], now)
            continue
        try:
            found = _own_plan(row, now, calendars.get(row.id), plans) if row.id in own else _plan(row, now, plans)
            runs += len(found.earlier) + 1
            planned.rows.append((row, found))
        except (CronError, ZoneError) as error:
            set_aside(row.id, error, now)
            planned.broken += 1
    return planned


def _plan(row: DueRow, now: datetime, plans: dict[tuple[Any, ...], Plan]) -> Plan:
    if not row.status:
        return Plan(run=None, missed=None, next_run_at=None)
    conf = get_conf()
    zone_name = row.timezone or conf.timezone
    catch_up = timedelta(seconds=conf.catch_up_seconds)
    if row.date_time is not None and row.date_time != row.next_run_at:
        # The schedule had a cron expression when this occurrence fell due. Before a producer claimed the occurrence, an
        # operator replaced the expression with a date.
        late = (catch_up, skip_reasons.too_late(catch_up))
        return _last_of_cron(row.next_run_at, row.next_run_at, row.date_time, now, late, zone_name)
    edited_at = row.planned_at if row.planned_at is not None and row.next_run_at <= row.planned_at else None
    key = (row.schedule, row.date_time, zone_name, row.next_run_at, edited_at)
    if key not in plans:
        plans[key] = (
            plan_date(row.date_time, now, catch_up)
            if row.date_time is not None
            else plan_cron(timetable_of(row.schedule), zone_name, row.next_run_at, now, catch_up, edited_at)
        )
    return plans[key]


def _own_plan(row: DueRow, now: datetime, excluded: Exclusions | None, plans: dict[tuple[Any, ...], Plan]) -> Plan:
    """The plan of a schedule with rules of its own. Schedules with the same times, rules and calendar share it."""
    if not row.status:
        return Plan(run=None, missed=None, next_run_at=None)
    if row.spread_seconds is not None:  # each schedule has an offset of its own
        return _looked_at(row, now, excluded)
    edited_at = row.planned_at if row.planned_at is not None and row.first <= row.planned_at else None
    rules = tuple(getattr(row, name) for name in TIMING_COLUMNS)
    times = (row.schedule, row.date_time, row.timezone, row.next_run_at, row.next_nominal_at, edited_at)
    key = (*times, *rules, row.overlap, row.stay_alive, id(excluded))
    if key not in plans:
        plans[key] = _looked_at(row, now, excluded)
    return plans[key]


def _looked_at(row: DueRow, now: datetime, excluded: Exclusions | None) -> Plan:
    own = assigned_of(row, excluded)
    if row.date_time is not None and row.date_time != row.first:
        # As in `_plan`: a date has replaced the expression.
        following = first_plan(own, now)
        timing = own.timing
        is_none = timing.missed_runs is MissedRuns.NONE
        why = skip_reasons.NOT_CAUGHT_UP if is_none else skip_reasons.too_late(timing.within)
        late = (timing.longest_wait, why)
        found = _last_of_cron(row.first, row.next_run_at, following[0], now, late, own.times.tz)
        return replace(found, next_nominal_at=following[1])
    return plan_own(own.since_edit(row.first, row.planned_at), row.first, now)


def _last_of_cron(
    nominal: datetime, start: datetime, following: datetime | None, now: datetime, late: tuple[timedelta, str], tz: str
) -> Plan:
    """The plan of the occurrence that a schedule had last, before a date has replaced its expression.

    It runs unless it is too old, as without the edit.

    Args:
        start: when it was to start.
        following: when the schedule is due next.
        late: how old the occurrence may be, and why it does not run if it is older.
    """
    key, (longest_wait, why) = cron_key(nominal), late
    if now - start <= longest_wait:
        return Plan(run=Due(nominal, key, start), missed=None, next_run_at=following)
    reason = skip_reasons.missed(nominal, nominal, 1, why, zone(tz))
    return Plan(run=None, missed=Missed(nominal, nominal, 1, key, reason), next_run_at=following)
