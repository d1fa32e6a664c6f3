"""A slow but simple implementation of calendars, which looks at every minute.

It shares no code with `scheduling.core`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
NAMES = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@dataclass(frozen=True)
class Line:
    """One line of a calendar, as values.

    Args:
        first, last: dates (kind `date`), (month, day) (kind `yearly`), or local date-times (kind `times`).
        days: the numbers of weekdays, Monday is 0 (kind `weekly`).
        window: from which minute of a day, and up to which; greater than 1,440 if it passes midnight.
    """

    kind: str
    first: object = None
    last: object = None
    days: tuple[int, ...] = ()
    window: tuple[int, int] = (0, 1440)

    @property
    def text(self) -> str:
        start, end = self.window
        later = end if end <= 1440 else end - 1440
        hours = (
            f" {start // 60:02}:{start % 60:02}-{later // 60:02}:{later % 60:02}" if self.window != (0, 1440) else ""
        )
        match self.kind:
            case "date":
                return f"{self.first}{hours}" if self.first == self.last else f"{self.first}..{self.last}"
            case "times":
                return f"{self.first:%Y-%m-%d %H:%M}..{self.last:%Y-%m-%d %H:%M}"
            case "yearly":
                first, last = (f"{month:02}-{day:02}" for month, day in (self.first, self.last))  # type: ignore[misc]
                return f"every {first}{hours}" if first == last else f"every {first}..{last}"
        return ",".join(NAMES[day] for day in self.days) + hours

    def has(self, wall: datetime) -> bool:
        """Whether the line excludes this local minute."""
        if self.kind == "times":
            return self.first <= wall < self.last  # type: ignore[operator,no-any-return]
        minute = wall.hour * 60 + wall.minute
        start, end = self.window
        return any(self._has_day(wall.date() - back * DAY) and start <= minute + back * 1440 < end for back in range(2))

    def _has_day(self, day: date) -> bool:
        if self.kind == "date":
            return self.first <= day <= self.last  # type: ignore[operator,no-any-return]
        if self.kind == "weekly":
            return day.weekday() in self.days
        here = (day.month, day.day)
        if self.first <= self.last:  # type: ignore[operator]
            return self.first <= here <= self.last  # type: ignore[operator,no-any-return]
        return here >= self.first or here <= self.last  # type: ignore[operator,no-any-return]


def excluded(lines: list[Line], tz: str, after: datetime, until: datetime) -> list[tuple[datetime, bool]]:
    """Every minute in [after, until), and whether it is excluded."""
    return [(instant, line is not None) for instant, line in first_lines(lines, tz, after, until)]


def first_lines(
    lines: Sequence[Line], tz: str, after: datetime, until: datetime
) -> Iterator[tuple[datetime, Line | None]]:
    """Every minute in [after, until), and the first line that excludes it; None if it is free.

    A local time counts when the clock reaches or skips it for the first time. So the latest local time that was
    reached decides. A clock change is never longer than one day, so the loop starts a day earlier.
    """
    info, known = ZoneInfo(tz), dict[datetime, Line | None]()
    instant, highest = after - DAY - MINUTE, datetime.min
    while instant < until:
        highest = max(highest, instant.astimezone(info).replace(tzinfo=None, fold=0))
        if instant >= after:
            if highest not in known:
                known[highest] = next((line for line in lines if line.has(highest)), None)
            yield instant, known[highest]
        instant += MINUTE


def around(day: date, days: int) -> st.SearchStrategy[list[Line]]:
    """Random lines, of which most concern the days around one day."""
    dates = st.integers(-days, days).map(lambda shift: day + timedelta(days=shift))
    times = st.integers(0, 2 * days * 1440).map(
        lambda minute: datetime(day.year, day.month, day.day) - timedelta(days=days) + minute * MINUTE
    )
    clock = st.sampled_from([0, 59, 60, 90, 119, 120, 135, 150, 179, 180, 181, 540, 1320, 1439]) | st.integers(0, 1439)
    windows = st.just((0, 1440)) | st.tuples(clock, clock).filter(lambda pair: pair[0] != pair[1]).map(_passing)
    month_days = dates.map(lambda found: (found.month, found.day)) | st.just((2, 29))
    single = st.builds(lambda found, window: Line("date", found, found, window=window), dates, windows)
    ranges = (
        st.tuples(dates, dates)
        .map(lambda pair: Line("date", min(pair), max(pair)))
        .filter(lambda line: line.first != line.last)
    )
    locals_ = (
        st.tuples(times, times)
        .filter(lambda pair: pair[0] != pair[1])
        .map(lambda pair: Line("times", min(pair), max(pair)))
    )
    weekly = st.builds(
        lambda found, window: Line("weekly", days=tuple(sorted(found)), window=window),
        st.sets(st.integers(0, 6), min_size=1, max_size=3),
        windows,
    )
    yearly = st.builds(lambda found, window: Line("yearly", found, found, window=window), month_days, windows)
    spans = (
        st.tuples(month_days, month_days)
        .filter(lambda pair: pair[0] != pair[1])
        .map(lambda pair: Line("yearly", *pair))
    )
    return st.lists(single | ranges | locals_ | weekly | yearly | spans, min_size=1, max_size=6)


def _passing(pair: tuple[int, int]) -> tuple[int, int]:
    start, end = pair
    return (start, end) if end > start else (start, end + 1440)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def random_lines(pick: random.Random, day: date, days: int) -> list[Line]:
    """Some lines that concern the days after one day."""

    def some_day() -> date:
        return day + timedelta(days=pick.randrange(days))

    def window() -> tuple[int, int]:
        start, end = pick.sample(range(0, 1440, 30), 2)
        return pick.choice([(0, 1440), _passing((start, end))])

    def line() -> Line:
        first = some_day()
        match pick.randrange(4):
            case 0:
                return Line("date", first, first, window=window())
            case 1:
                start = datetime(first.year, first.month, first.day) + pick.randrange(48) * 30 * MINUTE
                return Line("times", start, start + pick.randrange(1, 60) * 30 * MINUTE)
            case 2:
                return Line("yearly", (first.month, first.day), (first.month, first.day), window=window())
        return Line("weekly", days=(first.weekday(),), window=window())

    return [line() for _ in range(pick.randrange(4))]
