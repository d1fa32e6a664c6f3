"""When a schedule fires: the instants of a cron expression in a time zone.

The policy is that of Debian's cron(8), because it is the only one under which a job neither gets lost nor runs twice
when the clocks change. A schedule whose minute or hour field begins with ``*`` is an *interval* job; any other is
*fixed* (aliases are expanded first, so ``@hourly`` is interval and ``@daily`` is fixed). Let W be the wall-clock
minutes that match the five fields.

1. Interval jobs follow real time, as cron(8) has it for "jobs which are specified with wildcards": they fire at every
   instant whose local reading is in W. A reading that a gap skips does not fire; one that is repeated fires twice.
2. Fixed jobs fire exactly once for each wall-clock minute in W: at the first instant that reads so, or, if no instant
   does, at the first one after the gap. Several that come to the same instant are one run. However long the gap.
3. Day rule: if day of month or weekday begins with ``*`` both must match, otherwise either. 7 is Sunday. ``a-a`` is a.
4. Everything is read in the schedule's own zone; "next" is strictly later; minutes are the finest step.

So ``0 0-23 * * *`` is fixed and fires once in a repeated hour, where ``0 * * * *`` fires twice; ``* 2 * * *`` does not
fire at all on the day that has no 02:00.

Instants go in aware and come out in UTC. A naive one raises ValueError. CronError says that nothing fires any more:
within 50 years or before year 10000, which happens to an interval job whose only readings a gap skips each time. All
functions are pure and safe to call from several threads.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from scheduling.core.days import count_days, first_day
from scheduling.core.dialect import Cron, CronError, parse
from scheduling.core.zones import (
    ZoneError,
    clock_changes,
    instants,
    require_aware,
    resolve,
    resolve_wall,
    zone,
    zone_names,
)

__all__ = [
    "Cron",
    "CronError",
    "ZoneError",
    "count_between",
    "count_readings",
    "last_between",
    "next_after",
    "parse",
    "resolve_wall",
    "upcoming",
    "zone",
    "zone_names",
]

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_YEARS_AHEAD = 50
# The largest change on record: Samoa and others crossed the date line by a day.
_LARGEST_CHANGE = timedelta(hours=25)


def next_after(cron: Cron, tz: str, after: datetime) -> datetime:
    """The first instant later than ``after``, in UTC, at which ``cron`` fires in the zone named ``tz``.

    Raises ValueError for a naive ``after``, ZoneError for the name, CronError if nothing fires any more.
    """
    info, after = zone(tz), require_aware(after)
    try:
        return (_next_interval if cron.interval else _next_fixed)(cron, info, after)
    except OverflowError as error:
        raise _exhausted(cron, info) from error


def upcoming(cron: Cron, tz: str, after: datetime, count: int) -> list[datetime]:
    """The next ``count`` instants later than ``after``, ascending, in UTC; raises as ``next_after`` does."""
    found: list[datetime] = []
    for _ in range(count):
        found.append(after := next_after(cron, tz, after))
    return found


def last_between(cron: Cron, tz: str, after: datetime, until: datetime) -> datetime | None:
    """The latest instant in (after, until] at which ``cron`` fires, in UTC, or None.

    Looks back from ``until`` in windows that grow fourfold, then halves what is left: some tens of steps for years.
    Raises ValueError for naive arguments and ZoneError for the name.
    """
    after, until = require_aware(after), require_aware(until)
    window = _MINUTE
    while after < until:
        start = until - window if window < until - after else after
        found = _next_until(cron, tz, start, until)
        if found is not None:
            return _latest(cron, tz, found, until)
        if start == after:
            return None
        window *= 4
    return None


def count_between(cron: Cron, tz: str, after: datetime, until: datetime) -> int:
    """How many instants in (after, until] ``cron`` fires at: the length of the list, without making the list.

    One reading is one instant, so days x hours x minutes are counted; but not from a clock change until its size later,
    where readings come again or stand for skipped ones. There the instants are walked one by one.
    Raises ValueError for naive arguments and ZoneError for the name.
    """
    info, after, until = zone(tz), require_aware(after), require_aware(until)
    if until <= after:
        return 0
    count, here = 0, after
    for change, size in clock_changes(info, after - _LARGEST_CHANGE, until):
        near, far = (min(max(edge, here), until) for edge in (change - _SECOND, change + size))
        count += count_readings(cron, _wall(here, info), _wall(near, info))
        count += sum(1 for _ in _walk(cron, tz, near, far))
        here = far
    return count + count_readings(cron, _wall(here, info), _wall(until, info))


def _next_fixed(cron: Cron, info: ZoneInfo, after: datetime) -> datetime:
    now = wall = _wall(after, info)
    while True:
        wall = _next_reading(cron, wall, now, info)
        # In the second pass of a fold the readings ahead had their instant in the first pass, and are passed over.
        if (instant := resolve(wall, info)) > after:
            return instant


def _next_interval(cron: Cron, info: ZoneInfo, after: datetime) -> datetime:
    now = wall = _wall(after, info)
    first, second = instants(now, info)
    if first <= after < second:
        # In the first pass of a fold: readings already past will come again, before those that follow the fold.
        wall -= second - first
    best: datetime | None = None
    while True:
        wall = _next_reading(cron, wall, now, info)
        first, second = instants(wall, info)
        if first <= second:  # else a gap skips this reading
            for instant in (first, second):
                if instant > after and (best is None or instant < best):
                    best = instant
        if best is not None and wall > now:
            return best


def _next_reading(cron: Cron, wall: datetime, now: datetime, info: ZoneInfo) -> datetime:
    """The first wall-clock minute later than ``wall`` that matches the five fields."""
    wall = wall.replace(second=0, microsecond=0) + _MINUTE
    today = wall.date()
    day = first_day(cron.calendar, today)
    if day == today:
        hours, minutes = cron.hours, cron.minutes
        place = bisect_left(hours, wall.hour)
        if place < len(hours) and hours[place] == wall.hour:
            if wall.minute <= minutes[-1]:
                return wall.replace(minute=minutes[bisect_left(minutes, wall.minute)])
            place += 1
        if place < len(hours):
            return wall.replace(hour=hours[place], minute=minutes[0])
        day = first_day(cron.calendar, today + _DAY)
    if day is None or day.year > now.year + _YEARS_AHEAD:
        raise _exhausted(cron, info)
    return datetime(day.year, day.month, day.day, cron.hours[0], cron.minutes[0])


def _next_until(cron: Cron, tz: str, after: datetime, until: datetime) -> datetime | None:
    try:
        found = next_after(cron, tz, after)
    except CronError:
        return None
    return found if found <= until else None


def _latest(cron: Cron, tz: str, found: datetime, until: datetime) -> datetime:
    """The latest instant in [found, until], of which ``found`` is one."""
    end = until
    # A second, not a minute: before 1972 zones had offsets with seconds, and a gap may end at any.
    while end - found > _SECOND:
        middle = found + (end - found) / 2
        later = _next_until(cron, tz, middle, until)
        if later is None:
            end = middle
        else:
            found = later
    return found


def _walk(cron: Cron, tz: str, after: datetime, until: datetime) -> Iterator[datetime]:
    found = _next_until(cron, tz, after, until)
    while found is not None:
        yield found
        found = _next_until(cron, tz, found, until)


def count_readings(cron: Cron, after: datetime, until: datetime) -> int:
    """How many naive wall-clock minutes in (after, until] match the five fields."""
    days = count_days(cron.calendar, after.date(), until.date())
    return days * len(cron.hours) * len(cron.minutes) + _readings_to(cron, until) - _readings_to(cron, after)


def _readings_to(cron: Cron, wall: datetime) -> int:
    """How many wall-clock minutes match on the day of ``wall``, up to and with it."""
    if first_day(cron.calendar, wall.date()) != wall.date():
        return 0
    count = bisect_left(cron.hours, wall.hour) * len(cron.minutes)
    return count + (bisect_right(cron.minutes, wall.minute) if wall.hour in cron.hours else 0)


def _wall(instant: datetime, info: ZoneInfo) -> datetime:
    return instant.astimezone(info).replace(tzinfo=None, fold=0)


def _exhausted(cron: Cron, info: ZoneInfo) -> CronError:
    return CronError(f"'{cron.expression}' does not fire any more in {info.key} within {_YEARS_AHEAD} years.")
