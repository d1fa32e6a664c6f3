"""Which entries of a calendar exclude which minutes of a local day."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from scheduling.core.calendar_entries import MINUTES_A_DAY, WHOLE_DAY, Entry, Range, Weekly, Window, Yearly
from scheduling.core.calendar_spans import Span, flatten, joined, overlapping

MOST_KEPT = 50_000
"""So many spans of single days are kept."""

_WEEK = 7 * MINUTES_A_DAY
_LEAP_YEAR = 2000
_MonthDay = tuple[int, int]


class Days:
    """What entries exclude, by day.

    Args:
        ranges: flat spans, in minutes from the beginning of the day with the ordinal 0.
        week: flat spans, in minutes from the beginning of a Monday.
        own: by day of the year, what excludes a part of it, in minutes of the day.
        later: by day of the year, what its windows exclude of the day after it.
    """

    def __init__(
        self,
        ranges: list[Span],
        week: list[Span],
        own: dict[_MonthDay, list[Span]],
        later: dict[_MonthDay, list[Span]],
    ) -> None:
        self._ranges, self._week, self._own, self._later = ranges, week, own, later
        days = range(0, _WEEK, MINUTES_A_DAY)
        self._weekdays = [_shifted(overlapping(week, base, base + MINUTES_A_DAY), base) for base in days]
        self._kept: dict[int, list[Span]] = {}
        self._size = 0

    @property
    def last_date(self) -> date | None:
        """The last day of the ranges; None if there is none."""
        return date.fromordinal((self._ranges[-1][1] - 1) // MINUTES_A_DAY) if self._ranges else None

    def joined(self) -> Days:
        """The same minutes, whatever entry excludes them. They have the number 0, and are quick to walk over."""
        own, later = ({day: joined(spans) for day, spans in by_day.items()} for by_day in (self._own, self._later))
        return Days(joined(self._ranges), joined(self._week), own, later)

    def of_day(self, ordinal: int) -> list[Span]:
        """The flat spans of a day, in minutes of the day."""
        if (found := self._kept.get(ordinal)) is not None:
            return found
        base = ordinal * MINUTES_A_DAY
        dated = _shifted(overlapping(self._ranges, base, base + MINUTES_A_DAY), base)
        special = dated + self._of_year(ordinal) if self._own else dated
        usual = self._weekdays[(ordinal - 1) % 7]  # the day with the ordinal 1 was a Monday
        if not special:
            return usual  # so it is on most days
        found = flatten([*special, *usual])
        if self._size > MOST_KEPT:
            self._kept, self._size = {}, 0
        self._size += len(found)
        self._kept[ordinal] = found
        return found

    def _of_year(self, ordinal: int) -> list[Span]:
        """What repeats each year. A window of the day before may end on this day."""
        day, before = date.fromordinal(ordinal), date.fromordinal(max(ordinal - 1, 1))
        return self._own.get((day.month, day.day), []) + self._later.get((before.month, before.day), [])


def days_of(entries: Iterable[Entry]) -> Days:
    """What these entries exclude, with their numbers from 0 on."""
    ranges: dict[tuple[int, int], int] = {}
    weekly: dict[tuple[int, int], int] = {}
    yearly: dict[tuple[_MonthDay, _MonthDay, Window], int] = {}
    for number, entry in enumerate(entries):
        match entry.when:
            case Range(first, end):
                ranges.setdefault((first, end), number)
            case Weekly(days, (start, end)):
                for day in days:
                    weekly.setdefault((day * MINUTES_A_DAY + start, day * MINUTES_A_DAY + end), number)
            case Yearly(first_day, last_day, window):
                yearly.setdefault((first_day, last_day, window), number)
    # The window of a Sunday may end on the Monday after it, which is also the first day of this week.
    both = ((first + shift, end + shift, number) for (first, end), number in weekly.items() for shift in (0, -_WEEK))
    week = overlapping(flatten(both), 0, _WEEK)
    return Days(flatten((first, end, number) for (first, end), number in ranges.items()), week, *_by_day(yearly))


def _by_day(
    yearly: dict[tuple[_MonthDay, _MonthDay, Window], int],
) -> tuple[dict[_MonthDay, list[Span]], dict[_MonthDay, list[Span]]]:
    """The flat spans of the entries that repeat each year: of the day itself, and of the day after it."""
    days: list[Span] = []
    own: dict[_MonthDay, list[Span]] = {}
    later: dict[_MonthDay, list[Span]] = {}
    for (first_day, last_day, window), number in yearly.items():
        if window != WHOLE_DAY:
            own.setdefault(first_day, []).append((window[0], min(window[1], MINUTES_A_DAY), number))
            if window[1] > MINUTES_A_DAY:
                later.setdefault(first_day, []).append((0, window[1] - MINUTES_A_DAY, number))
            continue
        first, last = _day_of_year(first_day), _day_of_year(last_day)
        days += [(first, last + 1, number)] if first <= last else [(first, 366, number), (0, last + 1, number)]
    for first, end, number in flatten(days):
        for place in range(first, end):
            day = date.fromordinal(date(_LEAP_YEAR, 1, 1).toordinal() + place)
            own.setdefault((day.month, day.day), []).append((*WHOLE_DAY, number))
    return (
        {month_day: flatten(spans) for month_day, spans in own.items()},
        {month_day: flatten(spans) for month_day, spans in later.items()},
    )


def _day_of_year(month_day: _MonthDay) -> int:
    return (date(_LEAP_YEAR, *month_day) - date(_LEAP_YEAR, 1, 1)).days


def _shifted(spans: list[Span], by: int) -> list[Span]:
    return [(first - by, end - by, number) for first, end, number in spans]
