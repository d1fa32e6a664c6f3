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
from typing import NamedTuple
from zoneinfo import ZoneInfo

from scheduling.core.calendar_days import Days, days_of
from scheduling.core.calendar_entries import MINUTES_A_DAY, CalendarError, Entry, parse_entries
from scheduling.core.calendar_spans import Span, span_at, span_from
from scheduling.core.timing import EXCLUDED_FOR_EVER
from scheduling.core.zones import ZoneError, reached, require_aware, resolve, zone

__all__ = ["Blocked", "CalendarError", "Excluded", "ExclusionCalendar", "parse_calendar"]

MOST_REASONS = 5
MOST_PIECES = 5_000
"""So many pieces of an exclusion are looked at for its reasons. An exclusion may last for years, and each of its
minutes may have another entry."""

_SEARCHED = int(EXCLUDED_FOR_EVER / timedelta(minutes=1))
_LAST_MINUTE = (date.max.toordinal() - 1) * MINUTES_A_DAY
_MONTH = 31 * MINUTES_A_DAY
_MOST_KNOWN = 16


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
        reasons: what its first entries say, each once, at most `MOST_REASONS`.
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


class _Known(NamedTuple):
    """An exclusion that was asked for lately.

    Args:
        first, stop: from which minute on its end is known, and up to which one. An exclusion that never ends is looked
            for again after a month: by then, its end may be less than 10 years away.
        end: None if it never ends.
    """

    first: int
    stop: int
    end: int | None


class ExclusionCalendar:
    """The entries of a calendar, prepared for questions. A question costs a few bisections.

    The end of an exclusion is looked for in spans of which those that touch are joined: an exclusion may last for
    years, and each of its minutes may have another entry.
    """

    def __init__(self, entries: list[Entry], info: ZoneInfo) -> None:
        self._info = info
        self.reasons = [entry.reason for entry in entries]
        self._days = days_of(entries)
        self._joined = self._days.joined()
        self._known: tuple[_Known, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is excluded."""
        return not self.reasons

    @property
    def last_date(self) -> date | None:
        """The last local day of the entries that name a year; None if no entry does."""
        return self._days.last_date

    def blocked(self, instant: datetime) -> Blocked | None:
        """Why an instant is excluded; None if it is not. Raises ValueError for a naive instant."""
        minute = self._minute(require_aware(instant))
        if (span := _span(self._days, minute)) is None:
            return None
        end = self._end(minute)
        return Blocked(None if end is None else self._instant(end), self.reasons[span[2]])

    def exclusions(self, after: datetime, until: datetime) -> Iterator[Excluded]:
        """The exclusions that lie in [after, until) at least in part, ascending. The first may have begun earlier:
        then it begins here at `after`."""
        for start, stop, first in self._found(after, until):
            yield Excluded(start, stop, self._reasons(first))

    def first_from(self, after: datetime, until: datetime) -> datetime | None:
        """The first excluded instant in [after, until); None if none is excluded."""
        return next((start for start, _stop, _first in self._found(after, until)), None)

    def of_day(self, day: date) -> list[tuple[int, int, str]]:
        """What is excluded of a local day: from which minute, up to which, and why. Ascending, without overlaps."""
        return [(first, end, self.reasons[number]) for first, end, number in self._days.of_day(day.toordinal())]

    def _minute(self, instant: datetime) -> int:
        """The local minute that the clocks have reached, counted from the beginning of the day with the ordinal 0."""
        wall = reached(instant, self._info)
        return wall.toordinal() * MINUTES_A_DAY + wall.hour * 60 + wall.minute

    def _instant(self, minute: int) -> datetime:
        day, rest = divmod(minute, MINUTES_A_DAY)
        return resolve(datetime.fromordinal(day) + timedelta(minutes=rest), self._info).astimezone(UTC)

    def _found(self, after: datetime, until: datetime) -> Iterator[tuple[datetime, datetime | None, int]]:
        """The beginnings and ends of exclusions, as in `exclusions`, and a minute of each."""
        after, until = require_aware(after), require_aware(until)
        here = self._minute(after)
        while (first := self._next(here, self._minute(until) + 1)) is not None:
            start = max(self._instant(first), after)
            if start >= until:
                return
            end = self._end(first)
            stop = None if end is None else self._instant(end)
            if stop is None or stop > start:  # otherwise the clocks skip it
                yield start, stop, first
            if end is None:
                return
            here = max(end, first + 1)

    def _end(self, minute: int) -> int | None:
        """The end of the exclusion that contains a minute. None if it never ends."""
        if (known := self._known_at(minute)) is not None:
            return known.end
        last, here = min(minute + _SEARCHED, _LAST_MINUTE), minute
        for _number, here in self._pieces(self._joined, minute, last):
            # What was asked for a later instant is the rest of the way.
            if (known := self._known_at(here)) is not None:
                here = last if known.end is None else known.end
                break
        end = here if here < last else None
        new, others = _Known(minute, minute + _MONTH if end is None else end, end), self._known
        if known is not None and known.end == end:  # both are one
            new, others = known._replace(first=minute), tuple(other for other in others if other != known)
        self._known = (new, *others[: _MOST_KNOWN - 1])
        return end

    def _known_at(self, minute: int) -> _Known | None:
        return next((known for known in self._known if known.first <= minute < known.stop), None)

    def _reasons(self, first: int) -> tuple[str, ...]:
        """What the entries of the exclusion say that contains a minute."""
        found: dict[str, None] = {}
        last = min(first + _SEARCHED, _LAST_MINUTE)
        for number, _here in islice(self._pieces(self._days, first, last), MOST_PIECES):
            found.setdefault(self.reasons[number])
            if len(found) == MOST_REASONS:
                break
        return tuple(found)

    def _pieces(self, days: Days, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The entries that exclude what follows from a minute on without a gap, and the end of each piece."""
        here = first
        while here < last:
            span = _span(days, here)
            if span is None:
                # If the clocks skip the end, the next minute is a later one. It may be excluded, too.
                there = self._minute(self._instant(here))
                if there == here or (span := _span(days, there)) is None:
                    return
                here = there
            here += span[1] - here % MINUTES_A_DAY
            yield span[2], here

    def _next(self, here: int, until: int) -> int | None:
        """The first excluded minute in [here, until)."""
        while here < min(until, _LAST_MINUTE):
            day, rest = divmod(here, MINUTES_A_DAY)
            if (span := span_from(self._joined.of_day(day), rest)) is not None:
                found = day * MINUTES_A_DAY + max(span[0], rest)
                return found if found < until else None
            here = (day + 1) * MINUTES_A_DAY
        return None


def _span(days: Days, minute: int) -> Span | None:
    """The span of the minute's day that contains it, in minutes of the day."""
    day, rest = divmod(minute, MINUTES_A_DAY)
    return span_at(days.of_day(day), rest)
