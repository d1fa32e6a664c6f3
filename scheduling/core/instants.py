"""Lists all instants of a range at which a timetable fires, many times as fast as one question for each of them.

Between two clock changes, each reading is one instant, and the offset stays the same. Only near a clock change, the
instants are asked for one by one (`cron.next_after`), because readings may be repeated or skipped there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from scheduling.core.cron import LARGEST_CHANGE, CronError, Timetable, next_after, zone
from scheduling.core.intervals import RealInterval
from scheduling.core.timetables import DailyTimes
from scheduling.core.zones import clock_changes, require_aware

_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_FAR = 9_000
"""In later years, sums with instants may overflow, so the instants are asked for one by one."""


def instants_between(timetable: Timetable, tz: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """The instants in (after, until] at which a timetable fires in the zone named `tz`, ascending, in UTC.

    Raises:
        ValueError: an instant is naive.
        ZoneError: the zone is unknown.
    """
    info, here, until = zone(tz), require_aware(after), require_aware(until)
    if isinstance(timetable, RealInterval) or not 1 < here.year <= until.year < _FAR:
        yield from _one_by_one(timetable, tz, here, until)
        return
    for change, size in _changes(info, here - LARGEST_CHANGE, until):
        near, far = (min(max(edge, here), until) for edge in (change - _SECOND, change + size))
        yield from _steady(timetable, info, here, near)
        yield from _one_by_one(timetable, tz, near, far)
        here = far
    yield from _steady(timetable, info, here, until)


def _steady(times: DailyTimes, info: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """The instants in (after, until], in which the clocks do not change."""
    if after >= until:
        return
    offset = after.astimezone(info).utcoffset() or timedelta(0)
    spans = [timedelta(hours=hour, minutes=minute) - offset for hour in times.hours for minute in times.minutes]
    day: date | None = (after + offset).date()
    while day is not None and (day := times.first_day(day)) is not None:
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
        for span in spans:
            instant = midnight + span
            if instant > until:
                return
            if instant > after:
                yield instant
        day += _DAY


def _one_by_one(timetable: Timetable, tz: str, after: datetime, until: datetime) -> Iterator[datetime]:
    while after < until:
        try:
            after = next_after(timetable, tz, after)
        except CronError:
            return  # it never fires again
        if after <= until:
            yield after


def _changes(info: ZoneInfo, after: datetime, until: datetime) -> Iterator[tuple[datetime, timedelta]]:
    for year in range(after.year, until.year + 1):
        for change, size in _changes_of(info, year):
            if after < change <= until:
                yield change, size


@lru_cache(maxsize=256)
def _changes_of(info: ZoneInfo, year: int) -> Sequence[tuple[datetime, timedelta]]:
    """The clock changes of a year."""
    return list(clock_changes(info, datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)))
