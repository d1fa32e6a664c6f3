"""A slow but simple implementation of intervals, which counts each second, day and week from the beginning.

It shares no code with `scheduling.core`. The strategies make an interval together with its expression.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from hypothesis import strategies as st

from tests.core import brute

DAY = timedelta(days=1)
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@dataclass(frozen=True)
class Real:
    """An interval of hours, minutes and seconds."""

    expression: str
    seconds: int
    start: datetime

    def fires(self, tz: str, after: datetime, until: datetime) -> list[datetime]:
        """Return the instants in (after, until] by counting on from the beginning."""
        found, here = [], self.start
        while here <= until:
            if here > after:
                found.append(here)
            here += timedelta(seconds=self.seconds)
        return found


@dataclass(frozen=True)
class Days:
    """An interval of days, or of weeks if it has weekdays."""

    expression: str
    number: int
    weekdays: tuple[int, ...]
    hour: int
    minute: int
    start: date

    interval = False

    def dates(self, until: date) -> set[date]:
        """Return the dates up to `until`, by counting days and Mondays."""
        found, day, days, weeks = set(), self.start, 0, 0
        while day <= until:
            if self.weekdays:
                weeks += day.weekday() == 0 and day != self.start
                if weeks % self.number == 0 and day.weekday() in self.weekdays:
                    found.add(day)
            elif days % self.number == 0:
                found.add(day)
            day, days = day + DAY, days + 1
        return found

    def matches(self, wall: datetime) -> bool:
        return (wall.hour, wall.minute) == (self.hour, self.minute) and wall.date() in self._dates

    def fires(self, tz: str, after: datetime, until: datetime) -> list[datetime]:
        """Return the instants in (after, until], by the rules for fixed schedules."""
        object.__setattr__(self, "_dates", self.dates((until + 2 * DAY).date()))
        return brute.walk(self, tz, after, until)

    _dates: set[date] | frozenset[date] = frozenset()


def _spelled(seconds: int) -> str:
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    return "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number)


def _real(seconds: int, start: datetime, offset: int, spelling: int) -> Real:
    length = [_spelled(seconds), f"{seconds}s", f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"][spelling]
    hours, minutes = divmod(abs(offset), 60)
    local = start + timedelta(minutes=offset)
    sign = "-" if offset < 0 else "+"
    since = f"{local:%Y-%m-%dT%H:%M:%S}{sign}{hours:02}:{minutes:02}"
    return Real(f"@every {length} from {since}", seconds, start.replace(tzinfo=UTC))


def real(near: datetime, far: timedelta) -> st.SearchStrategy[Real]:
    """Intervals that begin at most `far` before or after an instant."""
    seconds = st.integers(1, 7_200) | st.sampled_from([10, 60, 90, 300, 1_800, 3_600, 5_400, 21_600, 86_400, 129_600])
    begin = near.replace(tzinfo=None, microsecond=0)
    starts = st.integers(-int(far.total_seconds()), int(far.total_seconds()) // 10)
    return st.builds(
        _real, seconds, starts.map(lambda back: begin + timedelta(seconds=back)), st.integers(-14 * 60, 14 * 60),
        st.integers(0, 2),
    )  # fmt: skip


def _days(number: int, weekdays: set[int], hour: int, minute: int, start: date, unit: str) -> Days:
    named = tuple(sorted(weekdays)) if unit == "w" else ()
    on = f" on {','.join(WEEKDAYS[day] for day in named)}" if named else ""
    if unit == "w" and not named:
        named = (start.weekday(),)
    return Days(f"@every {number}{unit}{on} at {hour}:{minute:02} from {start}", number, named, hour, minute, start)


def days(near: datetime) -> st.SearchStrategy[Days]:
    """Intervals of days and weeks that begin within some months before an instant, or shortly after it."""
    starts = st.integers(-120, 10).map(lambda back: near.date() + timedelta(days=back))
    return st.builds(
        _days, st.integers(1, 4) | st.integers(5, 40), st.sets(st.integers(0, 6), max_size=4), st.integers(0, 23),
        st.sampled_from([0, 1, 15, 30, 45, 59]), starts, st.sampled_from("dw"),
    )  # fmt: skip
