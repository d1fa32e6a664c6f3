"""Intervals: timetables that are counted from a fixed beginning, never from the last run.

An interval of hours, minutes and seconds is counted in real time, so clock changes do not touch it. An interval of days
or weeks is counted in local dates, and runs once on each of them, as a fixed job does (see the module ``cron``).
Neither has an occurrence before its beginning. Each function needs the same few steps, however far the beginning is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

FIRST_DAY = date(2001, 1, 1)
"""The beginning of intervals of days and weeks that name none. It is a Monday."""

FIRST_INSTANT = datetime(2001, 1, 1, tzinfo=UTC)
"""The beginning of intervals of hours, minutes and seconds that name none."""

_MINUTE = timedelta(minutes=1)
_LAST_DAY = date.max.toordinal()


@dataclass(frozen=True, slots=True)
class RealInterval:
    """An interval of real time, such as ``@every 90m from 2026-01-05T00:00Z``. ``parse`` makes it.

    Comparisons use only ``expression``, because ``expression`` determines all other attributes.
    """

    expression: str
    """The expression in its shortest spelling. A beginning of ``FIRST_INSTANT`` is left out."""
    step: timedelta = field(compare=False)
    """The time between two occurrences, whole seconds."""
    start: datetime = field(compare=False)
    """The first occurrence, in UTC."""

    @property
    def has_seconds(self) -> bool:
        """Whether some occurrences are not at a whole minute."""
        return bool(self.step % _MINUTE) or self.start.second != 0

    def next_after(self, after: datetime) -> datetime:
        """The first occurrence later than ``after``. Raises OverflowError after the year 9999."""
        if after < self.start:
            return self.start
        return self.start + ((after - self.start) // self.step + 1) * self.step

    def last_until(self, until: datetime) -> datetime | None:
        """The last occurrence not later than ``until``; None if there is none."""
        return self.start + (until - self.start) // self.step * self.step if until >= self.start else None

    def count_until(self, until: datetime) -> int:
        """The number of all occurrences not later than ``until``."""
        return (until - self.start) // self.step + 1 if until >= self.start else 0


@dataclass(frozen=True, slots=True)
class DayInterval:
    """An interval of days or weeks, such as ``@every 2w on mon,fri at 08:00 from 2026-01-09``. ``parse`` makes it.

    Weeks begin on Monday. The week of ``start`` is the first one that counts. Comparisons use only ``expression``.
    """

    expression: str
    """The expression in its full spelling. A beginning of ``FIRST_DAY`` is left out."""
    number: int = field(compare=False)
    """How many days or weeks lie between two rounds."""
    weekdays: tuple[int, ...] = field(compare=False)
    """The weekdays of an interval of weeks, from 0 (Monday) to 6, ascending; empty for an interval of days."""
    hours: tuple[int] = field(compare=False)
    minutes: tuple[int] = field(compare=False)
    """The hour and the minute of the occurrences, in local time."""
    start: date = field(compare=False)
    """No occurrence has an earlier date."""

    @property
    def interval(self) -> bool:
        """False, as for each fixed schedule. The module ``cron`` explains the two kinds."""
        return False

    @property
    def days(self) -> int:
        """The number of days between two rounds."""
        return self.number * 7 if self.weekdays else self.number

    def first_day(self, day: date) -> date | None:
        """The first date with an occurrence on or after ``day``; None if it lies after the year 9999."""
        places = self.weekdays or (0,)
        whole, rest = divmod(max(day, self.start).toordinal() - self._base, self.days)
        place = next((place for place in places if place >= rest), places[0] + self.days)
        found = self._base + whole * self.days + place
        return date.fromordinal(found) if found <= _LAST_DAY else None

    def count_days(self, start: date, end: date) -> int:
        """How many dates in [start, end) have an occurrence."""
        return max(0, self._count_before(max(end, self.start)) - self._count_before(max(start, self.start)))

    @property
    def _base(self) -> int:
        """The ordinal number of the day from which the rounds are counted."""
        return self.start.toordinal() - (self.start.weekday() if self.weekdays else 0)

    def _count_before(self, day: date) -> int:
        """How many dates of all rounds, those before ``start``, too, lie before ``day``."""
        places = self.weekdays or (0,)
        whole, rest = divmod(day.toordinal() - self._base, self.days)
        return whole * len(places) + sum(place < rest for place in places)
