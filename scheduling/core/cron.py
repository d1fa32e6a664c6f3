"""When a schedule fires: the instants of a cron expression in a time zone.

The policy is that of Debian's cron(8), because it is the only one under which a job neither gets lost nor runs twice
when the clocks change. A schedule whose minute or hour field begins with ``*`` is an *interval* job; any other is
a *fixed* job. (Aliases are expanded first, so ``@hourly`` is interval and ``@daily`` is fixed.) A *reading*
is the time that a wall clock shows at an instant. Let W be the wall-clock minutes that match the five fields.

1. Interval jobs follow real time. (cron(8) calls them "jobs which are specified with wildcards".) They fire at every
   instant whose local reading is in W. A skipped reading does not fire. A repeated reading fires twice.
2. Fixed jobs fire exactly once for each wall-clock minute in W, at the first instant with that reading. If a gap skips
   the reading, they fire at the first instant after the gap, however long the gap is. If several readings lead to the
   same instant, they are one run.
3. Day rule: if the day-of-month or weekday field begins with ``*``, both fields must match. Otherwise one match is
   enough. Weekday 7 is Sunday. The range ``a-a`` means the single value a.
4. All fields are read in the schedule's own zone. "Next" means strictly later. The finest step is one minute.

So ``0 0-23 * * *`` is fixed and fires once in a repeated hour, but ``0 * * * *`` fires twice. ``* 2 * * *`` does not
fire on a day that has no 02:00.

The functions take aware instants and return instants in UTC. A naive instant raises ValueError. CronError means that
the schedule does not fire within the next 50 years, or does not fire before year 10000. For example, an interval job
never fires if all its readings fall into gaps. All functions are pure and safe to call from several threads.
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

# Names of other modules that callers import from here.
__all__ = ["Cron", "CronError", "ZoneError", "parse", "resolve_wall", "zone", "zone_names"]

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_YEARS_AHEAD = 50
# The largest clock change on record is 24 hours, when Samoa crossed the date line. This limit is one hour more.
_LARGEST_CHANGE = timedelta(hours=25)


def next_after(cron: Cron, tz: str, after: datetime) -> datetime:
    """The first instant later than ``after``, in UTC, at which ``cron`` fires in the zone named ``tz``.

    Raises ValueError for a naive ``after``, ZoneError for an unknown zone, and CronError if ``cron`` never fires again.
    """
    info, after = zone(tz), require_aware(after)
    try:
        return (_next_interval if cron.interval else _next_fixed)(cron, info, after)
    except OverflowError as error:
        raise _exhausted(cron, info) from error


def upcoming(cron: Cron, tz: str, after: datetime, count: int) -> list[datetime]:
    """The next ``count`` instants later than ``after``, ascending, in UTC. Raises the errors of ``next_after``."""
    found: list[datetime] = []
    for _ in range(count):
        found.append(after := next_after(cron, tz, after))
    return found


def last_between(cron: Cron, tz: str, after: datetime, until: datetime) -> datetime | None:
    """The latest instant in (after, until] at which ``cron`` fires, in UTC, or None.

    The search looks back from ``until`` in windows that grow fourfold, and then bisects the first window with a match.
    A search over years takes some tens of steps. Raises ValueError for naive arguments and ZoneError for an unknown
    zone.
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
    """The number of instants in (after, until] at which ``cron`` fires.

    The function does not list the instants. Far from a clock change, each reading is one instant, so the count is
    days x hours x minutes. Just after a clock change, readings may be repeated or moved, so the instants are counted
    one by one. The slow count covers only a time that is as long as the clock change.
    Raises ValueError for naive arguments and ZoneError for an unknown zone.
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
        # In the second pass of a fold, the next readings have already fired in the first pass, so they do not count.
        if (instant := resolve(wall, info)) > after:
            return instant


def _next_interval(cron: Cron, info: ZoneInfo, after: datetime) -> datetime:
    now = wall = _wall(after, info)
    first, second = instants(now, info)
    if first <= after < second:
        # In the first pass of a fold, readings that have fired come again before the readings that follow the fold.
        wall -= second - first
    best: datetime | None = None
    while True:
        wall = _next_reading(cron, wall, now, info)
        first, second = instants(wall, info)
        if first <= second:  # if `first` is later than `second`, a gap skips this reading
            for instant in (first, second):
                if instant > after and (best is None or instant < best):
                    best = instant
        if best is not None and wall > now:
            return best


def _next_reading(cron: Cron, wall: datetime, now: datetime, info: ZoneInfo) -> datetime:
    """The first wall-clock minute later than ``wall`` that matches the five fields of the expression."""
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
    """The latest instant in [found, until] at which ``cron`` fires. ``found`` must be such an instant."""
    end = until
    # The search is exact to the second: before 1972 zones had offsets with seconds, so a gap may end at any second.
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
    """How many wall-clock minutes match on the day of ``wall``, up to and including ``wall``."""
    if first_day(cron.calendar, wall.date()) != wall.date():
        return 0
    count = bisect_left(cron.hours, wall.hour) * len(cron.minutes)
    return count + (bisect_right(cron.minutes, wall.minute) if wall.hour in cron.hours else 0)


def _wall(instant: datetime, info: ZoneInfo) -> datetime:
    return instant.astimezone(info).replace(tzinfo=None, fold=0)


def _exhausted(cron: Cron, info: ZoneInfo) -> CronError:
    return CronError(f"'{cron.expression}' does not fire any more in {info.key} within {_YEARS_AHEAD} years.")
