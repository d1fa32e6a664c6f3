"""Decides what new zone data (tzdata) changes: which data is newer, and to which instant a planned run moves.

A zone's rules change when a government changes them. Then the same local time is another instant. A planned run of a
fixed schedule stands for a local time that has not run yet. With the new data, the run takes place at the instant of
this same local time. So no local time is lost, and none runs twice, although both instants may be on the same day.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from scheduling.core.cron import CronError, count_readings, next_after
from scheduling.core.dialect import Cron
from scheduling.core.intervals import DayInterval
from scheduling.core.zones import resolve, zone

_VERSION = re.compile(r"([0-9]{4})([a-z]{1,3})")
_MINUTE, _SECOND = timedelta(minutes=1), timedelta(seconds=1)
_STEP = timedelta(days=5)
"""No zone has changed twice within six days (tzdata 2026f, 1800-2100)."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

YEARS = 10
"""The offsets of so many years are recorded. A run that is planned later is not moved."""

Offsets = Sequence[Sequence[int]]
"""The offsets of a zone: pairs of the first second (since 1970) and the offset in seconds, ascending."""


def is_newer(version: str, than: str) -> bool:
    """Whether a version of tzdata, such as `2026b`, is newer than another one. An unknown version is never newer."""
    own, other = _VERSION.fullmatch(version), _VERSION.fullmatch(than)
    if own is None:
        return False
    return other is None or _order(own) > _order(other)


def _order(found: re.Match[str]) -> tuple[int, int, str]:
    return int(found[1]), len(found[2]), found[2]  # z is followed by za


def adopts(version: str, digest: str, known: Sequence[tuple[str, str]]) -> bool:
    """Whether a producer with this data plans the schedules anew.

    Two producers with different data would otherwise undo each other's plans for ever. So a version that is older than
    the newest one never does, and each data does only once.

    Args:
        known: the versions and digests of the data that was used before, the newest one last.
    """
    if any(digest == other for _version, other in known):
        return False
    newest = known[-1][0] if known else ""
    return not known or is_newer(version, newest) or version == newest


def offsets_of(info: ZoneInfo, start: datetime, years: int = YEARS) -> list[list[int]]:
    """The offsets of a zone from an instant on."""
    here, end = start.replace(microsecond=0), start + timedelta(days=366 * years)
    found = [[_seconds(here), _offset(here, info)]]
    while here < end:
        there = here + _STEP
        if (offset := _offset(there, info)) != found[-1][1]:
            found.append([_seconds(_change(info, here, there)), offset])
        here = there
    return found


def offset_at(offsets: Offsets, instant: datetime) -> timedelta | None:
    """The recorded offset at an instant; None if the record does not reach so far."""
    place = bisect_right([first for first, _offset in offsets], _seconds(instant)) - 1
    if place < 0 or _seconds(instant) > offsets[0][0] + 366 * YEARS * 86_400:
        return None
    return timedelta(seconds=offsets[place][1])


def moved_to(
    cron: Cron | DayInterval, tz: str, planned: datetime, offsets: Offsets, now: datetime, *, again: bool
) -> datetime:
    """The instant to which a planned run moves with the present zone data; `planned` if it stays.

    The result may have passed: then the run is due now.

    Args:
        planned: the instant at which the next run is planned. It has not run yet.
        offsets: those of the data with which it was planned.
        again: whether the schedules were planned anew before. Then a run that the present data has, too, was planned
            with it.

    Raises:
        CronError, ZoneError: the schedule never fires again, or the zone is gone.
    """
    info = zone(tz)
    offset = offset_at(offsets, planned)
    if offset is None or offset == timedelta(seconds=_offset(planned, info)):
        return planned
    before = offset_at(offsets, planned - _SECOND)
    gap = timedelta(0) if before is None else max(offset - before, timedelta(0))
    reading = _reading_of(cron, (planned + offset).replace(tzinfo=None, second=0, microsecond=0), gap)
    if (again or reading is None) and _fires_at(cron, tz, planned):
        return planned
    if cron.interval or reading is None:
        # It follows real time, so what lies before now is over. But what no producer has claimed is not lost.
        return next_after(cron, tz, min(now, planned - _SECOND))
    return resolve(reading, info)


def _reading_of(cron: Cron | DayInterval, shown: datetime, gap: timedelta) -> datetime | None:
    """The first local time that a planned run stands for; None if it stands for none.

    Args:
        shown: what the clock shows at the run. If it follows a gap, the run also stands for all times in the gap.
        gap: the length of the gap that ends at the run.
    """
    for back in range(gap // _MINUTE, -1, -1):
        wall = shown - back * _MINUTE
        if count_readings(cron, wall - _MINUTE, wall):
            return wall
    return None


def _fires_at(cron: Cron | DayInterval, tz: str, instant: datetime) -> bool:
    try:
        return next_after(cron, tz, instant - _SECOND) == instant
    except CronError:
        return False


def _seconds(instant: datetime) -> int:
    return (instant - EPOCH) // _SECOND


def _offset(instant: datetime, info: ZoneInfo) -> int:
    return int((instant.astimezone(info).utcoffset() or timedelta(0)).total_seconds())


def _change(info: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first second in (before, after] that has the offset of `after`."""
    new, low, high = _offset(after, info), before, after
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        low, high = (low, middle) if _offset(middle, info) == new else (middle, high)
    return high
