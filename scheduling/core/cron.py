"""Computes the instants at which a timetable fires in a time zone: a cron expression, or an interval (``@every``).

A schedule whose minute or hour field begins with ``*`` is an *interval* job. Every other schedule is a *fixed* job.
Aliases are expanded first, so ``@hourly`` is an interval job and ``@daily`` is a fixed job. The rules are those of
Debian's cron(8). When the clocks change, a fixed job is neither lost nor run twice.

A *reading* is the local time that a clock shows, to the minute. When the clocks go back (a *fold*), some readings are
repeated. When the clocks go forward (a *gap*), some readings are skipped. A reading *matches* if the five fields of
the expression match it.

1. An interval job fires whenever the clock shows a reading that matches. For a repeated reading, the job fires twice.
   For a skipped reading, the job does not fire. (cron(8) calls interval jobs "jobs which are specified with
   wildcards".)
2. A fixed job fires once for each reading that matches. For a repeated reading, the job fires only the first time. For
   a skipped reading, the job fires at the first instant after the gap, however long the gap is. If several readings
   lead to the same instant, the job fires once.
3. Day rule: if the day-of-month or weekday field begins with ``*``, both fields must match. Otherwise a match of one
   field is enough. Weekday 7 is Sunday. The range ``a-a`` means the single value a.
4. All fields are read in the schedule's own zone.

An interval of hours, minutes and seconds (``@every 90m``) is counted in real time. An interval of days or weeks
(``@every 2w on fri at 08:00``) is a fixed job: its readings are dates that are counted from its beginning, with one
time of the day.

So ``0 0-23 * * *`` is a fixed job and fires once in a repeated hour, but ``0 * * * *`` fires twice. ``* 2 * * *`` is
an interval job, so it does not fire on a day that skips 02:00 to 02:59.

The functions take aware instants and return instants in UTC. A naive instant raises ValueError. CronError means that
the schedule does not fire within the next 50 years or before year 10000. For example, an interval job never fires if
gaps skip all readings that match. All functions are pure and safe to call from several threads.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from scheduling.core.cron_error import CronError
from scheduling.core.dialect import Cron
from scheduling.core.intervals import RealInterval
from scheduling.core.timetables import DailyTimes, Timetable, parse
from scheduling.core.words import gettext as _
from scheduling.core.zones import (
    ZoneError,
    clock_changes,
    instants,
    require_aware,
    resolve,
    resolve_again,
    resolve_wall,
    zone,
    zone_names,
)

# Names of other modules that callers import from here.
__all__ = [
    "Cron", "CronError", "Timetable", "ZoneError", "parse", "resolve_again", "resolve_wall", "zone", "zone_names",
]  # fmt: skip

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_YEARS_AHEAD = 50
# The largest clock change on record is 24 hours: Samoa crossed the date line. This limit is one hour more.
LARGEST_CHANGE = timedelta(hours=25)


def next_after(timetable: Timetable, tz: str, after: datetime) -> datetime:
    """The first instant later than ``after``, in UTC, at which ``timetable`` fires in the zone named ``tz``.

    Raises ValueError for a naive ``after``, ZoneError for an unknown zone, and CronError if it never fires again.
    """
    info, after = zone(tz), require_aware(after)
    try:
        if isinstance(timetable, RealInterval):
            return _next_of_interval(timetable, info, after)
        return (_next_interval if timetable.interval else _next_fixed)(timetable, info, after)
    except OverflowError as error:
        raise _exhausted(timetable, info) from error


def upcoming(timetable: Timetable, tz: str, after: datetime, count: int) -> list[datetime]:
    """The next ``count`` instants later than ``after``, ascending, in UTC. Raises the errors of ``next_after``."""
    found: list[datetime] = []
    for _number in range(count):
        found.append(after := next_after(timetable, tz, after))
    return found


def last_between(timetable: Timetable, tz: str, after: datetime, until: datetime) -> datetime | None:
    """The latest instant in (after, until] at which ``timetable`` fires, in UTC, or None.

    The search tries windows that end at ``until``. Each window is four times as long as the previous one. The search
    then bisects the first window in which ``timetable`` fires. So a search over years takes only some tens of steps.
    Raises ValueError for naive arguments and ZoneError for an unknown zone.
    """
    after, until = require_aware(after), require_aware(until)
    if isinstance(timetable, RealInterval):
        zone(tz)
        last = timetable.last_until(until)
        return last if last is not None and last > after else None
    window = _MINUTE
    while after < until:
        start = until - window if window < until - after else after
        found = _next_until(timetable, tz, start, until)
        if found is not None:
            return _latest(timetable, tz, found, until)
        if start == after:
            return None
        window *= 4
    return None


def count_between(timetable: Timetable, tz: str, after: datetime, until: datetime) -> int:
    """The number of instants in (after, until] at which ``timetable`` fires.

    Listing all instants would be slow. Far from a clock change, each reading is one instant, so the count is
    days x hours x minutes. Just after a clock change, readings may be repeated or skipped. So for a period as long as
    the clock change, the instants are counted one by one.
    Raises ValueError for naive arguments and ZoneError for an unknown zone.
    """
    info, after, until = zone(tz), require_aware(after), require_aware(until)
    if until <= after:
        return 0
    if isinstance(timetable, RealInterval):
        return timetable.count_until(until) - timetable.count_until(after)
    count, here = 0, after
    for change, size in clock_changes(info, after - LARGEST_CHANGE, until):
        near, far = (min(max(edge, here), until) for edge in (change - _SECOND, change + size))
        count += count_readings(timetable, _wall(here, info), _wall(near, info))
        count += sum(1 for _instant in _walk(timetable, tz, near, far))
        here = far
    return count + count_readings(timetable, _wall(here, info), _wall(until, info))


def _next_of_interval(interval: RealInterval, info: ZoneInfo, after: datetime) -> datetime:
    found = interval.next_after(after)
    if found.year > after.year + _YEARS_AHEAD:
        raise _exhausted(interval, info)
    return found


def _next_fixed(times: DailyTimes, info: ZoneInfo, after: datetime) -> datetime:
    now = wall = _wall(after, info)
    while True:
        wall = _next_reading(times, wall, now, info)
        # If a repeated reading has already fired the first time, `resolve` gives an instant in the past.
        if (instant := resolve(wall, info)) > after:
            return instant


def _next_interval(times: DailyTimes, info: ZoneInfo, after: datetime) -> datetime:
    now = wall = _wall(after, info)
    first, second = instants(now, info)
    if first <= after < second:
        # `after` is in the first half of a fold. The readings of this half will come again, so the search begins
        # before them.
        wall -= second - first
    best: datetime | None = None
    while True:
        wall = _next_reading(times, wall, now, info)
        first, second = instants(wall, info)
        if first <= second:  # if `first` is later than `second`, a gap skips this reading
            for instant in (first, second):
                if instant > after and (best is None or instant < best):
                    best = instant
        if best is not None and wall > now:
            return best


def _next_reading(times: DailyTimes, wall: datetime, now: datetime, info: ZoneInfo) -> datetime:
    """The first reading later than ``wall`` that matches. Raises CronError if none matches within 50 years."""
    wall = wall.replace(second=0, microsecond=0) + _MINUTE
    today = wall.date()
    day = times.first_day(today)
    if day == today:
        hours, minutes = times.hours, times.minutes
        place = bisect_left(hours, wall.hour)
        if place < len(hours) and hours[place] == wall.hour:
            if wall.minute <= minutes[-1]:
                return wall.replace(minute=minutes[bisect_left(minutes, wall.minute)])
            place += 1
        if place < len(hours):
            return wall.replace(hour=hours[place], minute=minutes[0])
        day = times.first_day(today + _DAY)
    if day is None or day.year > now.year + _YEARS_AHEAD:
        raise _exhausted(times, info)
    return datetime(day.year, day.month, day.day, times.hours[0], times.minutes[0])


def _next_until(timetable: Timetable, tz: str, after: datetime, until: datetime) -> datetime | None:
    try:
        found = next_after(timetable, tz, after)
    except CronError:
        return None
    return found if found <= until else None


def _latest(timetable: Timetable, tz: str, found: datetime, until: datetime) -> datetime:
    """The latest instant in [found, until] at which ``timetable`` fires. ``timetable`` must fire at ``found``."""
    end = until
    # The search is exact to the second. Before 1972, zones had offsets with seconds, so a gap may end at any second.
    while end - found > _SECOND:
        middle = found + (end - found) / 2
        later = _next_until(timetable, tz, middle, until)
        if later is None:
            end = middle
        else:
            found = later
    return found


def _walk(timetable: Timetable, tz: str, after: datetime, until: datetime) -> Iterator[datetime]:
    found = _next_until(timetable, tz, after, until)
    while found is not None:
        yield found
        found = _next_until(timetable, tz, found, until)


def count_readings(times: DailyTimes, after: datetime, until: datetime) -> int:
    """How many readings in (after, until] match. Both arguments are naive local times."""
    days = times.count_days(after.date(), until.date())
    return days * len(times.hours) * len(times.minutes) + _readings_to(times, until) - _readings_to(times, after)


def _readings_to(times: DailyTimes, wall: datetime) -> int:
    """How many readings match on the day of ``wall``, up to and including ``wall``."""
    if times.first_day(wall.date()) != wall.date():
        return 0
    count = bisect_left(times.hours, wall.hour) * len(times.minutes)
    return count + (bisect_right(times.minutes, wall.minute) if wall.hour in times.hours else 0)


def _wall(instant: datetime, info: ZoneInfo) -> datetime:
    return instant.astimezone(info).replace(tzinfo=None, fold=0)


def _exhausted(timetable: Timetable, info: ZoneInfo) -> CronError:
    said = _("'{expression}' never fires again in {zone} within {years} years.")
    return CronError(said.format(expression=timetable.expression, zone=info.key, years=_YEARS_AHEAD))
