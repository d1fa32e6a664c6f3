"""Counts or lists the occurrences of a timetable in the hours of a day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

from scheduling.core.cron import CronError, Timetable, count_between, next_after, zone
from scheduling.core.intervals import RealInterval
from scheduling.core.zones import clock_changes

_TICK = timedelta(microseconds=1)
_HOUR = timedelta(hours=1)
_LARGEST_CHANGE = timedelta(hours=25)


def hours_from(now: datetime, count: int = 24) -> list[datetime]:
    """The edges of the next `count` hours in UTC. The first edge is now. All between it and the last are full hours.

    If now is not a full hour, the first and the last hour are shorter, and there is one more.
    """
    full, until = now.replace(minute=0, second=0, microsecond=0), now + _HOUR * count
    return [now, *(edge for number in range(1, count + 1) if (edge := full + _HOUR * number) < until), until]


def counts_per_hour(timetable: Timetable, tz: str, edges: Sequence[datetime]) -> list[int]:
    """How many occurrences lie in each [edge, next edge).

    `count_between` counts any period, but takes long for ten thousand cron expressions. A full hour of the local clock
    far from a clock change has either as many occurrences as the expression has minutes, or none.

    Args:
        edges: instants in UTC, as `hours_from` gives them.

    Raises:
        ZoneError: the zone is unknown.
    """
    if isinstance(timetable, RealInterval):
        return [count_between(timetable, tz, start - _TICK, end - _TICK) for start, end in pairwise(edges)]
    hours = _local_hours(tz, tuple(edges))
    dates = {date for date, _hour in filter(None, hours)}
    matching = {date for date in dates if timetable.first_day(date) == date}
    return [
        (len(timetable.minutes) if full[1] in timetable.hours and full[0] in matching else 0)
        if full
        else count_between(timetable, tz, start - _TICK, end - _TICK)
        for (start, end), full in zip(pairwise(edges), hours, strict=True)
    ]


def starts_within(timetable: Timetable, tz: str, edges: Sequence[datetime]) -> list[datetime]:
    """The instants in [first edge, last edge) at which the timetable fires, ascending, in UTC.

    As `counts_per_hour`, it takes a full hour of the local clock far from a clock change as a whole.

    Raises:
        ZoneError: the zone is unknown.
    """
    if isinstance(timetable, RealInterval):
        return _fired(timetable, tz, edges[0] - _TICK, edges[-1] - _TICK)
    hours = _local_hours(tz, tuple(edges))
    dates = {date for date, _hour in filter(None, hours)}
    matching = {date for date in dates if timetable.first_day(date) == date}
    found: list[datetime] = []
    for (start, end), full in zip(pairwise(edges), hours, strict=True):
        if not full:
            found += _fired(timetable, tz, start - _TICK, end - _TICK)
        elif full[1] in timetable.hours and full[0] in matching:
            found += [start + timedelta(minutes=minute) for minute in timetable.minutes]
    return found


def _fired(timetable: Timetable, tz: str, after: datetime, until: datetime) -> list[datetime]:
    found: list[datetime] = []
    try:
        while (after := next_after(timetable, tz, after)) <= until:
            found.append(after)
    except CronError:
        pass  # it never fires again
    return found


@lru_cache(maxsize=256)
def _local_hours(tz: str, edges: tuple[datetime, ...]) -> list[tuple[date, int] | None]:
    """The local date and hour of each full hour of the local clock; None for an hour that has to be counted.

    All expressions of a zone share the result.
    """
    info = zone(tz)
    steady = not any(clock_changes(info, edges[0] - _LARGEST_CHANGE, edges[-1]))
    found: list[tuple[date, int] | None] = []
    for start, end in pairwise(edges):
        wall = start.astimezone(info)
        full = steady and end - start == _HOUR and wall.minute == wall.second == 0
        found.append((wall.date(), wall.hour) if full else None)
    return found
