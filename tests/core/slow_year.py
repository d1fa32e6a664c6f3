"""A slow but simple implementation of what becomes of each instant of a schedule: it looks at every minute of a year.

It shares no code with `scheduling.core`. The tests compare the results of the two implementations.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from tests.core import brute, brute_calendar
from tests.core.brute_calendar import Line
from tests.core.random_schedules import RandomCalendar, RandomSchedule
from tests.core.slow_timing import Rules

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


class Told(NamedTuple):
    """Occurrences that follow each other and share their fate: those of one exclusion, or one that runs.

    Args:
        fate: runs, excluded or held.
        starts_at: when the last of them starts; None if none of them does.
        why: the line of the calendar that excludes the first of them; empty if none does.
    """

    first: datetime
    last: datetime
    count: int
    fate: str
    starts_at: datetime | None
    why: str = ""


class Block(NamedTuple):
    """Minutes in a row that a calendar excludes, each with the line that excludes it."""

    start: datetime
    lines: list[Line]

    @property
    def end(self) -> datetime:
        return self.start + MINUTE * len(self.lines)

    def why(self, instant: datetime) -> str:
        return self.lines[(instant - self.start) // MINUTE].text


class SlowCalendar:
    """What a calendar excludes, minute by minute, from `begin` up to `end` (both in UTC, whole minutes)."""

    def __init__(self, calendar: RandomCalendar, begin: datetime, end: datetime) -> None:
        self._blocks = list[Block]()
        for instant, line in brute_calendar.first_lines(calendar.lines, calendar.tz, begin, end):
            if line is not None:
                if not self._blocks or self._blocks[-1].end != instant:
                    self._blocks.append(Block(instant, []))
                self._blocks[-1].lines.append(line)
        self._starts = [block.start for block in self._blocks]

    def block(self, instant: datetime) -> Block | None:
        """The excluded minutes around an instant; None if it is free."""
        place = bisect_right(self._starts, instant) - 1
        return self._blocks[place] if place >= 0 and instant < self._blocks[place].end else None


def nominal(schedule: RandomSchedule, after: datetime, until: datetime) -> list[datetime]:
    """The nominal instants in (after, until]."""
    if schedule.date is not None:
        found = [schedule.date] if after < schedule.date <= until else []
    elif schedule.interval is not None:
        found = schedule.interval.fires(schedule.tz, after, until)
    else:
        found = _fires(schedule.cron, schedule.tz, after, until)
    since, end = schedule.since, schedule.until
    return [one for one in found if (since is None or one >= since) and (end is None or one <= end)]


@lru_cache(maxsize=8)
def _fires(cron: str, tz: str, after: datetime, until: datetime) -> list[datetime]:
    return brute.fires(cron, tz, after, until)


def fates(
    schedule: RandomSchedule, number: int, instants: Sequence[datetime], calendar: SlowCalendar | None
) -> Iterator[Told]:
    """What becomes of these nominal instants. Some more than are wanted must follow, unless there are no more.

    Args:
        number: the primary key of the schedule, from which its offsets are computed.
    """
    rules = Rules("", schedule.tz, number, spread=schedule.spread or 0, each=schedule.each)
    place = 0
    while place < len(instants):
        first = instants[place]
        block = calendar.block(first) if calendar is not None else None
        members = [first]
        while block is not None and len(members) < len(instants) - place:
            if (following := instants[place + len(members)]) >= block.end:
                break
            members.append(following)
        place += len(members)
        following_ = instants[place] if place < len(instants) else None
        last = members[-1]
        if block is None:
            yield Told(first, last, 1, "runs", last + _offset(rules, last, last, following_))
            continue
        fate, at, why = "excluded", None, block.why(first)
        if schedule.hold:
            gives_way = following_ == block.end
            fate, at = "held", None if gives_way else block.end + _offset(rules, last, block.end, following_)
        yield Told(first, last, len(members), fate, at, why)


def _offset(rules: Rules, instant: datetime, start: datetime, following: datetime | None) -> timedelta:
    return rules.offset(instant, timedelta(days=1) if following is None else following - start)
