"""A slow but simple implementation of the cron rules, which looks at every minute.

It shares no code with `scheduling.core`. The tests compare the results of the two implementations.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

NEW_YORK, MADRID, LORD_HOWE = "America/New_York", "Europe/Madrid", "Australia/Lord_Howe"
SAO_PAULO, TEHRAN, APIA = "America/Sao_Paulo", "Asia/Tehran", "Pacific/Apia"
MINUTE = timedelta(minutes=1)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Matches(Protocol):
    @property
    def interval(self) -> bool: ...

    def matches(self, wall: datetime) -> bool: ...


@dataclass(frozen=True)
class Matcher:
    expression: str

    def __hash__(self) -> int:
        return hash(self.expression)

    @property
    def interval(self) -> bool:
        minute, hour, *_ = self.expression.split()
        return minute[0] == "*" or hour[0] == "*"

    def matches(self, wall: datetime) -> bool:
        minutes, hours = times_of(self.expression)
        return wall.minute in minutes and wall.hour in hours and self.matches_day(wall.date())

    def matches_day(self, day: date) -> bool:
        return _matches_day(self.expression, day)


@lru_cache(maxsize=512)
def times_of(expression: str) -> tuple[set[int], set[int]]:
    minute, hour, *_ = expression.split()
    return {m for m in range(60) if _hit(minute, m, 59)}, {h for h in range(24) if _hit(hour, h, 23)}


@lru_cache(maxsize=4096)
def _matches_day(expression: str, day: date) -> bool:
    _, _, dom, month, dow = expression.lower().split()
    for number, name in enumerate(MONTHS, 1):
        month = month.replace(name, str(number))
    for number, name in enumerate(WEEKDAYS):
        dow = dow.replace(name, str(number))
    if not _hit(month, day.month, 12, low=1):
        return False
    last = day.day == monthrange(day.year, day.month)[1]
    dom_hit = _hit(dom, day.day, 31, low=1) or (last and "l" in dom.split(","))
    weekday = day.isoweekday() % 7
    if "#" in dow:
        nth = (day.day - 1) // 7 + 1
        dow_hit = any(int(d) % 7 == weekday and int(k) == nth for d, k in (item.split("#") for item in dow.split(",")))
    else:
        dow_hit = _hit(dow, weekday, 6) or (weekday == 0 and _hit(dow, 7, 6))
    if dom[0] == "*" or dow[0] == "*":
        return dom_hit and dow_hit
    return dom_hit or dow_hit


def _hit(text: str, value: int, last: int, low: int = 0) -> bool:
    for item in text.split(","):
        base, _, step = item.partition("/")
        if base == "l":
            continue
        start, _, end = base.partition("-")
        first = low if start == "*" else int(start)
        final = int(end) if end else last if step or start == "*" else first
        if first <= value <= final and (value - first) % int(step or 1) == 0:
            return True
    return False


def fires(expression: str, tz: str, after: datetime, until: datetime) -> list[datetime]:
    """Return the instants in (after, until] at which a schedule with this expression fires."""
    return walk(Matcher(expression), tz, after, until)


def walk(matcher: Matches, tz: str, after: datetime, until: datetime) -> list[datetime]:
    """Return the instants in (after, until] at which a schedule fires whose readings are those that match."""
    info, found = ZoneInfo(tz), []
    # A fixed schedule fires once for each local minute that matches: when the clock reaches or skips this minute for
    # the first time. `highest` is the latest local minute so far. A clock change is never longer than one day, so the
    # loop starts two days before `after`.
    interval = matcher.interval
    instant = (after if interval else after - timedelta(days=2)).replace(second=0, microsecond=0)
    highest = _reading(instant, info)
    while (instant := instant + MINUTE) <= until:
        reading = _reading(instant, info)
        if interval:
            hit = matcher.matches(reading)
        else:
            hit = False
            while highest < reading:
                highest += MINUTE
                hit = matcher.matches(highest) or hit
        if hit and instant > after:
            found.append(instant)
    return found


def _reading(instant: datetime, info: ZoneInfo) -> datetime:
    return instant.astimezone(info).replace(tzinfo=None, fold=0)


def changes(tz: str, year: int) -> list[datetime]:
    """Return the instants of a year's clock changes, rounded up to a quarter of an hour."""
    info, step = ZoneInfo(tz), timedelta(minutes=15)
    found, instant = [], datetime(year, 1, 1, tzinfo=UTC)
    day = timedelta(days=1)
    while instant.year == year:
        if instant.astimezone(info).utcoffset() != (instant + day).astimezone(info).utcoffset():
            quarter = instant
            while quarter.astimezone(info).utcoffset() == (quarter + step).astimezone(info).utcoffset():
                quarter += step
            found.append(quarter + step)
        instant += day
    return found


ZONES = [
    "UTC",
    NEW_YORK,
    MADRID,
    LORD_HOWE,
    SAO_PAULO,
    TEHRAN,
    APIA,
    "Africa/Cairo",
    "Africa/Casablanca",  # changes around Ramadan; the time during Ramadan is one hour behind
    "America/Caracas",  # changed by half an hour, once
    "America/Havana",  # changes at midnight
    "America/St_Johns",  # changed at one minute past midnight
    "Antarctica/Casey",  # changes by several hours
    "Antarctica/Troll",  # changes by two hours
    "Asia/Gaza",
    "Asia/Kathmandu",  # changed by a quarter of an hour, once
    "Asia/Pyongyang",
    "Europe/Dublin",  # winter time is stored as a negative summer time
    "Pacific/Chatham",  # changes at 02:45
    "Pacific/Kwajalein",  # changed by a day, once
]
YEARS = [1986, 1993, 2007, 2011, 2016, 2018, 2022, 2026, 2035]


@lru_cache(maxsize=1)
def clock_changes() -> list[tuple[str, datetime]]:
    return [(tz, change) for tz in ZONES for year in YEARS for change in changes(tz, year)]


# The strategies below make random expressions. They use every form that a field may have.


def _items(low: int, high: int, size: int, names: list[str]) -> st.SearchStrategy[str]:
    number = st.integers(low, high).map(str)
    if names:
        number = number | st.sampled_from(names) | st.sampled_from(names).map(str.upper)
    bounds = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    spans = bounds.map(lambda pair: f"{pair[0]}-{pair[1]}")
    if names:
        places = st.tuples(st.integers(0, len(names) - 1), st.integers(0, len(names) - 1)).map(sorted)
        spans = spans | places.map(lambda pair: f"{names[pair[0]]}-{names[pair[1]]}")
    steps = st.integers(1, size)
    # For weekdays, a step never starts at 7, because `7/2` is refused.
    starts = st.integers(low, min(high, low + size - 1))
    return (
        number
        | spans
        | st.builds("{}/{}".format, spans, steps)
        | st.builds("{}/{}".format, starts, steps)
        | st.builds("{0}-{0}".format, st.integers(low, high))
    )


def _field(low: int, high: int, size: int, names: list[str] | None = None) -> st.SearchStrategy[str]:
    items = st.lists(_items(low, high, size, names or []), min_size=1, max_size=3).map(",".join)
    return st.just("*") | st.integers(1, size).map("*/{}".format) | items


def _nth() -> st.SearchStrategy[str]:
    day = st.integers(0, 7).map(str) | st.sampled_from(WEEKDAYS)
    return st.lists(st.builds("{}#{}".format, day, st.integers(1, 5)), min_size=1, max_size=3).map(",".join)


_days = _field(1, 31, 31) | st.sampled_from(["L", "l", "1,L", "L,15", "1-30,L", "1-31", "31", "29-30"])
_months = _field(1, 12, 12, MONTHS) | st.just("*")
_weekdays = _field(0, 7, 7, WEEKDAYS) | st.sampled_from(["0-6", "1-7", "0,7"])
_dates = st.builds("{} {} {}".format, _days, _months, _weekdays) | st.builds("* {} {}".format, _months, _nth())
# About half of the expressions match the hours of clock changes, so many random schedules fire near a clock change.
_times_of_day = st.builds("{} {}".format, _field(0, 59, 60), _field(0, 23, 24)) | st.builds(
    "{} {}".format, _field(0, 59, 60), st.sampled_from(["*", "*/2", "0-3", "0,1,2,3", "1", "2", "23,0", "0-23"])
)
times = st.builds("{} * * *".format, _times_of_day)
expressions = times | st.builds("{} {}".format, _times_of_day, _dates)
