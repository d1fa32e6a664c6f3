"""Counts the occurrences of a cron expression in each hour of a day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from scheduling.core.cron import Cron, count_between, zone
from scheduling.core.days import first_day
from scheduling.core.zones import clock_changes

_TICK = timedelta(microseconds=1)
_HOUR = timedelta(hours=1)
_LARGEST_CHANGE = timedelta(hours=25)


def hours_from(now: datetime, count: int = 24) -> list[datetime]:
    """The edges of `count` hours in UTC: the first hour begins now, all others at a full hour."""
    full = now.replace(minute=0, second=0, microsecond=0)
    return [now, *(full + _HOUR * number for number in range(1, count + 1))]


def counts_per_hour(cron: Cron, tz: str, edges: Sequence[datetime]) -> list[int]:
    """How many occurrences lie in each [edge, next edge).

    `count_between` counts any period, but takes long for ten thousand expressions. A full hour of the local clock far
    from a clock change has either as many occurrences as the expression has minutes, or none.

    Args:
        edges: instants in UTC, as `hours_from` gives them.

    Raises:
        ZoneError: the zone is unknown.
    """
    info = zone(tz)
    steady = not any(clock_changes(info, edges[0] - _LARGEST_CHANGE, edges[-1]))
    walls = [edge.astimezone(info) for edge in edges]
    dates = {wall.date() for wall in walls}
    matching = {date for date in dates if first_day(cron.calendar, date) == date}
    counts = []
    for (start, end), wall in zip(pairwise(edges), walls, strict=False):
        if steady and end - start == _HOUR and wall.minute == wall.second == 0:
            counts.append(len(cron.minutes) if wall.hour in cron.hours and wall.date() in matching else 0)
        else:
            counts.append(count_between(cron, tz, start - _TICK, end - _TICK))
    return counts
