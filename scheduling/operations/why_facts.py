"""Looks up what is known of a schedule about one instant. Each query is bounded, in a table of any size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduling.core.cron import CronError, ZoneError
from scheduling.core.expected import Expected, fate_of, nominal_of_start
from scheduling.core.lifecycle import State
from scheduling.core.nominal import TICK
from scheduling.core.occurrences import backfill_key, cron_key, date_key
from scheduling.core.why_at import LOOK_BACK, Facts, is_due, nearness, neighbours
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.first_keys import first_keys
from scheduling.models.own_timing import has_own_timing
from scheduling.models.timetable import timetable_of
from scheduling.models.visibility import Visibility

ROWS_LOOKED_AT = 500
"""An outage or a pause is recorded when it ends. Its row is among the first rows of the schedule that were claimed
after the instant. Only rows of "Run now" can stand before it, so at most this many rows are looked at."""

KEYS_BACK = 100
"""`first_keys` may be wrong by a few rows."""


@dataclass(frozen=True)
class Found:
    """The facts about an instant, and the rows behind them.

    Args:
        row: the execution of this occurrence.
        counting: the skipped execution that counts this occurrence among others.
        before, after: the occurrences before and after the instant, by the present times.
        executions: the executions of `before` and `after`, by their keys.
        problem: why the present times cannot be read; empty if they can.
        expected: what becomes of the occurrence, if the schedule has rules of its own and is due then.
        asked: the instant that was asked about, if it is the start of the occurrence, which is due earlier.
    """

    facts: Facts
    row: SchedulerExecution | None
    counting: SchedulerExecution | None
    before: datetime | None = None
    after: datetime | None = None
    executions: dict[str, SchedulerExecution] | None = None
    problem: str = ""
    expected: Expected | None = None
    asked: datetime | None = None

    @property
    def why(self) -> str:
        """What the calendar says about the occurrence; empty if it says nothing."""
        return "" if self.expected is None else self.expected.why


def found(schedule: Scheduler, visible: Visibility, at: datetime, now: datetime) -> Found:
    """Look up what the user sees about an instant. The instant is as `typed_instants` gives it."""
    asked, at = at, _nominal(schedule, at)
    keys = [cron_key(at), date_key(at)]
    date = schedule.date_time
    if date is not None and _minute(date) == at:
        keys.append(date_key(date))
    rows = visible.executions().filter(scheduler=schedule.pk).defer("params", "error_message")
    row = rows.filter(execution_key__in=keys).order_by("pk").first()
    if row is None or row.state == State.SKIPPED.value:  # a backfill may have made up for it
        row = rows.filter(execution_key=backfill_key(at)).first() or row
    due, before, after, problem = _times(schedule, at)
    fate = _fate(schedule, at) if due else None
    why = None if not due else "" if fate is None else fate.why
    counting = _counting(schedule, visible, at, why) if row is None and at <= now else None
    near = [cron_key(instant) for instant in (before, after) if instant is not None]
    return Found(
        Facts(
            at=at,
            now=now,
            due=due,
            recorded=row is not None,
            counted=counting is not None,
            active=schedule.status,
            created_at=schedule.created_at,
            planned_at=schedule.planned_at,
            paused_at=schedule.paused_at,
            next_run_at=schedule.next_nominal_at or schedule.next_run_at,
            fate=None if fate is None else fate.fate,
            starts_at=None if fate is None else fate.starts_at,
            outside=not due and _is_outside(schedule, at),
        ),
        row,
        counting,
        before,
        after,
        {one.execution_key: one for one in rows.filter(execution_key__in=near)} if near else {},
        problem,
        fate,
        asked if asked != at else None,
    )


def _nominal(schedule: Scheduler, at: datetime) -> datetime:
    """The nominal instant of the occurrence that is spread and starts within this minute; else the instant itself."""
    if not schedule.spread_seconds:
        return at
    try:
        own = schedule.assigned()
        if own.times.after(at - TICK) == at:
            return at
        return nominal_of_start(own, at) or at
    except (CronError, ZoneError):
        return at


def _fate(schedule: Scheduler, at: datetime) -> Expected | None:
    if not has_own_timing(schedule):
        return None
    try:
        date = schedule.date_time
        return fate_of(schedule.assigned(), at if date is None else date)
    except (CronError, ZoneError):
        return None


def _times(schedule: Scheduler, at: datetime) -> tuple[bool, datetime | None, datetime | None, str]:
    """Whether the schedule is due at the instant, the occurrences before and after it, and what is wrong."""
    date = schedule.date_time
    if date is None and has_own_timing(schedule):
        return _own_times(schedule, at)
    if date is not None:
        due, earlier = _minute(date) == at, date < at
        return due, date if earlier and not due else None, None if earlier or due else date, ""
    try:
        times, tz = timetable_of(schedule.schedule), schedule.zone_name
        return is_due(times, tz, at), *neighbours(times, tz, at), ""
    except (CronError, ZoneError) as error:
        return False, None, None, str(error)


def _own_times(schedule: Scheduler, at: datetime) -> tuple[bool, datetime | None, datetime | None, str]:
    try:
        times = schedule.assigned().times
        due = times.after(at - TICK) == at
        return due, times.last(at - LOOK_BACK, at - TICK), times.after(at), ""
    except (CronError, ZoneError) as error:
        return False, None, None, str(error)


def _is_outside(schedule: Scheduler, at: datetime) -> bool:
    """Whether only the bounds of the schedule keep it from being due at the instant."""
    since, until = schedule.active_from, schedule.active_until
    if schedule.date_time is not None or not ((since and at < since) or (until and at > until)):
        return False
    try:
        return is_due(timetable_of(schedule.schedule), schedule.zone_name, at)
    except (CronError, ZoneError):
        return False


def _counting(schedule: Scheduler, visible: Visibility, at: datetime, why: str | None) -> SchedulerExecution | None:
    """The skipped execution that spans the instant, and counts more than one occurrence.

    If there are several, each has a reason of its own. `why` is as in `nearness`. Of those that fit equally well, the
    one that began last is nearest: the others may have ended before the instant.
    """
    first = first_keys([at])[0] - KEYS_BACK
    rows = visible.executions().filter(scheduler=schedule.pk)
    columns = ("pk", "state", "missed", "scheduled_at", "executed_at", "reason")
    after = rows.filter(pk__gte=first).order_by("pk").values_list(*columns)[:ROWS_LOOKED_AT]
    # The row of an overlap is recorded at its first occurrence, and counts on until the open execution is over.
    before = rows.filter(pk__lt=first).order_by("-pk").values_list(*columns)[:ROWS_LOOKED_AT]
    for near in (after, before):
        spanning = [
            (nearness(reason, why), scheduled_at, -pk)
            for pk, state, missed, scheduled_at, executed_at, reason in near
            if state == State.SKIPPED.value and missed > 1 and scheduled_at <= at <= executed_at
        ]
        if spanning:
            return rows.defer("params", "error_message").filter(pk=-max(spanning)[2]).first()
    return None


def _minute(instant: datetime) -> datetime:
    return instant.replace(second=0, microsecond=0)
