"""The days that a review is about, and the hours of the tallies that belong to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from scheduling.core.messages import FIRST_YEAR, LAST_YEAR
from scheduling.core.zones import resolve

DAYS = 7
MOST_DAYS = 92
"""A review is about a quarter at most, so that its queries stay bounded."""

_LONGEST_TYPED = 10
_HOUR = timedelta(hours=1)


class RangeError(ValueError):
    """The days cannot be reviewed."""


class NoDate(RangeError):
    """A text is no date."""


class TooLong(RangeError):
    """There are more than MOST_DAYS days."""


@dataclass(frozen=True, slots=True)
class Range:
    """Whole days, from `first` to `last`, in the zone `info`."""

    first: date
    last: date
    info: ZoneInfo

    @property
    def days(self) -> list[date]:
        """All days, the first one first."""
        return [self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1)]

    @property
    def before(self) -> Range:
        """As many days, right before these."""
        length = self.last - self.first
        return Range(self.first - length - timedelta(days=1), self.first - timedelta(days=1), self.info)

    @property
    def since(self) -> datetime:
        """The beginning of the first hour, in UTC. See `day_of` for zones whose days begin within an hour of UTC."""
        return _hour(self.first, self.info)

    @property
    def until(self) -> datetime:
        """The end of the last hour, in UTC."""
        return _hour(self.last + timedelta(days=1), self.info)

    def day_of(self, hour: datetime) -> date:
        """The day to which an hour of the tallies belongs: the one in which its middle lies.

        An hour in which two days meet belongs to the later one, so that no hour is counted twice or left out.
        """
        day = (hour + _HOUR / 2).astimezone(self.info).date()
        return min(max(day, self.first), self.last)


def _hour(day: date, info: ZoneInfo) -> datetime:
    midnight = resolve(datetime.combine(day, time()), info).astimezone(UTC)
    return midnight.replace(minute=0, second=0, microsecond=0)


def last_days(today: date, info: ZoneInfo, days: int = DAYS) -> Range:
    """The days up to and including `today`."""
    return Range(today - timedelta(days=days - 1), today, info)


def typed_range(first: str, last: str, today: date, info: ZoneInfo) -> Range:
    """The range of two dates as a person types them: `2026-03-09`. An empty text is not given.

    Without a last day, it is today. Without a first day, the range has `DAYS` days. Dates in the wrong order are
    exchanged.

    Raises:
        NoDate: a text is no date, or its year is out of bounds.
        TooLong: there are more than MOST_DAYS days.
    """
    end = _day(last) if last.strip() else today
    start = _day(first) if first.strip() else end - timedelta(days=DAYS - 1)
    found = Range(min(start, end), max(start, end), info)
    if len(found.days) > MOST_DAYS:
        raise TooLong
    return found


def _day(text: str) -> date:
    try:
        day = datetime.strptime(text.strip()[: _LONGEST_TYPED + 1], "%Y-%m-%d").date()
    except ValueError:
        raise NoDate from None
    if not FIRST_YEAR < day.year < LAST_YEAR:
        raise NoDate
    return day
