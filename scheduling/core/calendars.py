"""Which instants a calendar excludes, until when, and why.

The entries of a calendar are local times of its zone. Their beginnings and ends follow the rules of fixed jobs
(`core.cron`): a time that the clocks repeat counts the first time, and a time that they skip counts at the first
instant after it. So a window that lies in the skipped hour excludes nothing, and a window that touches the next one
still touches it when the clocks change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from scheduling.core.calendar_entries import (
    MINUTES_A_DAY,
    WHOLE_DAY,
    CalendarError,
    Entry,
    Range,
    Weekly,
    Yearly,
    parse_entries,
)
from scheduling.core.calendar_spans import Span, flatten, overlapping, span_at
from scheduling.core.zones import ZoneError, reached, require_aware, resolve, zone

__all__ = ["Blocked", "CalendarError", "Excluded", "ExclusionCalendar", "parse_calendar"]

LONGEST_SEARCH = timedelta(days=3_653)
"""An exclusion that goes on for longer than 10 years counts as one that never ends."""

MOST_REASONS = 5
_SEARCHED = int(LONGEST_SEARCH / timedelta(minutes=1))
_LAST_MINUTE = (date.max.toordinal() - 1) * MINUTES_A_DAY
_KEPT_DAYS = 1_000
_LEAP_YEAR = 2000


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why an instant is excluded.

    Args:
        until: the end of the whole exclusion, in UTC: entries that overlap or touch are joined. None if it never ends.
        reason: what the entry says that excludes the instant.
    """

    until: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class Excluded:
    """One exclusion: entries that overlap or touch are joined.

    Args:
        start: its beginning, in UTC.
        until: its end, in UTC; None if it never ends.
        reasons: what its entries say, each once, at most `MOST_REASONS`.
    """

    start: datetime
    until: datetime | None
    reasons: tuple[str, ...]


def parse_calendar(entries: str, zone_name: str) -> ExclusionCalendar:
    """The calendar with these entries.

    Raises:
        CalendarError: a line is wrong, there is too much, or the zone does not exist.
    """
    try:
        info = zone(zone_name)
    except ZoneError as error:
        raise CalendarError(str(error)) from error
    return ExclusionCalendar(parse_entries(entries), info)


class ExclusionCalendar:
    """The entries of a calendar, prepared for questions. A question costs a few bisections."""

    def __init__(self, entries: list[Entry], info: ZoneInfo) -> None:
        self._info = info
        self.reasons = [entry.reason for entry in entries]
        ranges: dict[tuple[int, int], int] = {}
        weekly: dict[tuple[int, int], int] = {}
        yearly = _YearDays()
        for number, entry in enumerate(entries):
            match entry.when:
                case Range(first, end):
                    ranges.setdefault((first, end), number)
                case Weekly(days, (start, end)):
                    for day in days:
                        weekly.setdefault((day * MINUTES_A_DAY + start, day * MINUTES_A_DAY + end), number)
                case Yearly():
                    yearly.add(entry.when, number)
        self._ranges = flatten((first, end, number) for (first, end), number in ranges.items())
        week = 7 * MINUTES_A_DAY
        # The window of a Sunday may end on the Monday after it, which is also the first day of this week.
        both = ((first + shift, end + shift, number) for (first, end), number in weekly.items() for shift in (0, -week))
        self._week = overlapping(flatten(both), 0, week)
        self._year = yearly
        yearly.close()
        self._days: dict[int, list[Span]] = {}
        self._known: tuple[int, int | None] = (0, 0)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is excluded."""
        return not self.reasons

    @property
    def last_date(self) -> date | None:
        """The last local day of the entries that name a year; None if no entry does."""
        return date.fromordinal((self._ranges[-1][1] - 1) // MINUTES_A_DAY) if self._ranges else None

    def blocked(self, instant: datetime) -> Blocked | None:
        """Why an instant is excluded; None if it is not. Raises ValueError for a naive instant."""
        minute = self._minute(require_aware(instant))
        span = self._span(minute)
        return None if span is None else Blocked(self._until(minute), self.reasons[span[2]])

    def exclusions(self, after: datetime, until: datetime) -> Iterator[Excluded]:
        """The exclusions that lie in [after, until) at least in part, ascending. The first may have begun earlier:
        then it begins here at `after`."""
        after, until = require_aware(after), require_aware(until)
        here = self._minute(after)
        while (first := self._next(here, self._minute(until) + 1)) is not None:
            start = max(self._instant(first), after)
            if start >= until:
                return
            pieces, end = self._joined(first)
            stop = None if end is None else self._instant(end)
            if stop is None or stop > start:  # otherwise the clocks skip it
                yield Excluded(start, stop, pieces)
            if end is None:
                return
            here = max(end, first + 1)

    def first_from(self, after: datetime, until: datetime) -> datetime | None:
        """The first excluded instant in [after, until); None if none is excluded."""
        found = next(self.exclusions(after, until), None)
        return None if found is None else found.start

    def of_day(self, day: date) -> list[tuple[int, int, str]]:
        """What is excluded of a local day: from which minute, up to which, and why. Ascending, without overlaps."""
        return [(first, end, self.reasons[number]) for first, end, number in self._day(day.toordinal())]

    def _minute(self, instant: datetime) -> int:
        """The local minute that the clocks have reached, counted from the beginning of the day with the ordinal 0."""
        wall = reached(instant, self._info)
        return wall.toordinal() * MINUTES_A_DAY + wall.hour * 60 + wall.minute

    def _instant(self, minute: int) -> datetime:
        day, rest = divmod(minute, MINUTES_A_DAY)
        return resolve(datetime.fromordinal(day) + timedelta(minutes=rest), self._info).astimezone(UTC)

    def _span(self, minute: int) -> Span | None:
        """The span of the minute's day that contains it, in minutes of the day."""
        day, rest = divmod(minute, MINUTES_A_DAY)
        return span_at(self._day(day), rest)

    def _day(self, ordinal: int) -> list[Span]:
        if (found := self._days.get(ordinal)) is not None:
            return found
        if len(self._days) >= _KEPT_DAYS:
            self._days = {}
        base = ordinal * MINUTES_A_DAY
        own = [*_shifted(overlapping(self._ranges, base, base + MINUTES_A_DAY), base), *self._year.of_day(ordinal)]
        weekday = (ordinal - 1) % 7 * MINUTES_A_DAY  # the day with the ordinal 1 was a Monday
        own += _shifted(overlapping(self._week, weekday, weekday + MINUTES_A_DAY), weekday)
        found = self._days[ordinal] = flatten(own)
        return found

    def _until(self, minute: int) -> datetime | None:
        first, end = self._known
        # An exclusion that never ends is looked for again after a month: by then, its end may be less than 10 years
        # away.
        if not first <= minute < (first + 31 * MINUTES_A_DAY if end is None else end):
            end = self._joined(minute)[1]
            self._known = (minute, end)
        return None if end is None else self._instant(end)

    def _joined(self, first: int) -> tuple[tuple[str, ...], int | None]:
        """The reasons and the end of the exclusion that contains a minute. The end is None if it never ends."""
        numbers: dict[int, None] = {}
        last, here = min(first + _SEARCHED, _LAST_MINUTE), first
        while here < last:
            span = self._span(here)
            if span is None:
                # If the clocks skip the end, the next minute is a later one. It may be excluded, too.
                there = self._minute(self._instant(here))
                if there == here or self._span(there) is None:
                    break
                here = there
                continue
            numbers.setdefault(span[2])
            here += span[1] - here % MINUTES_A_DAY
        reasons = dict.fromkeys(self.reasons[number] for number in numbers)
        return tuple(islice(reasons, MOST_REASONS)), here if here < last else None

    def _next(self, here: int, until: int) -> int | None:
        """The first excluded minute in [here, until)."""
        while here < min(until, _LAST_MINUTE):
            day, rest = divmod(here, MINUTES_A_DAY)
            for first, end, _number in self._day(day):
                if end > rest:
                    found = day * MINUTES_A_DAY + max(first, rest)
                    return found if found < until else None
            here = (day + 1) * MINUTES_A_DAY
        return None


class _YearDays:
    """The entries that repeat each year, by day of the year."""

    def __init__(self) -> None:
        self._ranges: dict[tuple[int, int], int] = {}
        self._windows: dict[tuple[int, int], dict[tuple[int, int], int]] = {}
        self._own: dict[tuple[int, int], list[Span]] = {}
        self._later: dict[tuple[int, int], list[Span]] = {}

    def add(self, when: Yearly, number: int) -> None:
        if when.window == WHOLE_DAY:
            self._ranges.setdefault((_day_of_year(when.first), _day_of_year(when.last)), number)
        else:
            self._windows.setdefault(when.first, {}).setdefault(when.window, number)

    def close(self) -> None:
        """Prepare the questions, when all entries have been added."""
        days: list[Span] = []
        for (first, last), number in self._ranges.items():
            if first <= last:
                days.append((first, last + 1, number))
            else:
                days += [(first, 366, number), (0, last + 1, number)]
        own: dict[tuple[int, int], list[Span]] = {}
        later: dict[tuple[int, int], list[Span]] = {}
        for first, end, number in flatten(days):
            for place in range(first, end):
                day = date.fromordinal(date(_LEAP_YEAR, 1, 1).toordinal() + place)
                own.setdefault((day.month, day.day), []).append((*WHOLE_DAY, number))
        for month_day, windows in self._windows.items():
            for (start, end), number in windows.items():
                own.setdefault(month_day, []).append((start, min(end, MINUTES_A_DAY), number))
                if end > MINUTES_A_DAY:
                    later.setdefault(month_day, []).append((0, end - MINUTES_A_DAY, number))
        self._own = {month_day: flatten(spans) for month_day, spans in own.items()}
        self._later = {month_day: flatten(spans) for month_day, spans in later.items()}
        self._ranges, self._windows = {}, {}

    def of_day(self, ordinal: int) -> list[Span]:
        """The spans of a day, in minutes of the day. A window of the day before may end on this day."""
        if not self._own:
            return []
        day, before = date.fromordinal(ordinal), date.fromordinal(max(ordinal - 1, 1))
        own = self._own.get((day.month, day.day), [])
        return own + self._later.get((before.month, before.day), [])


def _day_of_year(month_day: tuple[int, int]) -> int:
    return (date(_LEAP_YEAR, *month_day) - date(_LEAP_YEAR, 1, 1)).days


def _shifted(spans: list[Span], by: int) -> list[Span]:
    return [(first - by, end - by, number) for first, end, number in spans]
