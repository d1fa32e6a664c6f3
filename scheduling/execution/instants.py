"""The instants at which a schedule runs, by its present times, bounds and calendar."""

from __future__ import annotations

from datetime import datetime

from scheduling.core.nominal import NominalTimes
from scheduling.models import Scheduler
from scheduling.models.own_timing import has_own_timing
from scheduling.models.timetable import timetable_of


def instants_of(row: Scheduler, after: datetime, until: datetime, limit: int) -> list[datetime]:
    """The first nominal instants in (after, until] at which the schedule runs, ascending, in UTC, at most `limit`.

    An instant that its calendar excludes is left out. Of those that the calendar holds, the last one runs.

    Raises:
        CronError, ZoneError: the schedule or its zone is invalid. Only plain SQL can write such a row.
    """
    found: list[datetime] = []
    if not has_own_timing(row):
        times, instant = _times(row), after
        while len(found) < limit and (following := times.after(instant)) is not None and following <= until:
            found.append(instant := following)
        return found
    own = row.assigned()
    first = own.times.after(after)
    for stretch in own.walk(first) if first is not None else ():
        if stretch.first > until or len(found) == limit:
            break
        if stretch.why is None:
            found.append(stretch.first)
        elif own.holds and stretch.last is not None and stretch.last <= until and not own.release(stretch)[1]:
            found.append(stretch.last)
    return found


def count_of(row: Scheduler, after: datetime, until: datetime) -> int:
    """How many nominal instants lie in (after, until], with those that a calendar excludes. It lasts only
    milliseconds, even for years.

    Raises:
        CronError, ZoneError: as `instants_of`.
    """
    return (row.assigned().times if has_own_timing(row) else _times(row)).count(after, until)


def _times(row: Scheduler) -> NominalTimes:
    cron = timetable_of(row.schedule) if row.date_time is None else None
    return NominalTimes(cron, row.zone_name, row.date_time)
