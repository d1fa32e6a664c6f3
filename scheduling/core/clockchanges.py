"""What a clock change does to a schedule: which readings the change skips or repeats, and which runs it affects.

A reading is a wall-clock time that matches the schedule. If a reading is repeated, the clock shows it in a first and in
a second pass. The module ``cron`` contains the rule for clock changes. This module describes the effects to users. An
interval of real time has no readings, so no clock change affects it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from scheduling.core.cron import Timetable, count_readings
from scheduling.core.intervals import RealInterval
from scheduling.core.timetables import DailyTimes
from scheduling.core.zones import clock_changes, instants, require_aware, zone

_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)


class Effect(Enum):
    """What happens to a schedule if a clock change skips or repeats its readings."""

    MOVED = "moved"
    """A fixed schedule runs once for the skipped readings, at the first instant after the gap."""
    ONCE = "once"
    """A fixed schedule runs only in the first pass of the repeated readings."""
    DROPPED = "dropped"
    """A real-time schedule does not run for the skipped readings."""
    TWICE = "twice"
    """A real-time schedule runs in both passes of the repeated readings."""
    STEADY = "steady"
    """The clock change has no effect: a real-time schedule that runs in every hour keeps its interval."""


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A clock change that affects a schedule.

    Args:
        instant: the change, in UTC.
        start, end: the naive local times [start, end) that are skipped or repeated.
        skipped: True if these times are skipped, False if they are repeated.
        readings: how many readings of the schedule are in [start, end).
    """

    instant: datetime
    start: datetime
    end: datetime
    skipped: bool
    readings: int
    effect: Effect


def changes_met(timetable: Timetable, tz: str, after: datetime, until: datetime) -> list[ClockChange]:
    """The clock changes in (after, until] that skip or repeat readings of the schedule, in ascending order.

    Raises ValueError for naive arguments and ZoneError for an unknown zone.
    """
    info, found = zone(tz), list[ClockChange]()
    if isinstance(timetable, RealInterval):
        return found
    for instant, size in clock_changes(info, require_aware(after), require_aware(until)):
        before = (instant - _SECOND).astimezone(info).replace(tzinfo=None, fold=0) + _SECOND
        now = instant.astimezone(info).replace(tzinfo=None, fold=0)
        skipped = now > before
        start, end = (before, now) if skipped else (now, now + size)
        readings = count_readings(timetable, start - _MINUTE, end - _MINUTE)
        if readings:
            found.append(ClockChange(instant, start, end, skipped, readings, _effect(timetable, skipped)))
    return found


def _effect(times: DailyTimes, skipped: bool) -> Effect:
    if not times.interval:
        return Effect.MOVED if skipped else Effect.ONCE
    if len(times.hours) == 24:
        return Effect.STEADY
    return Effect.DROPPED if skipped else Effect.TWICE


def moves_local_times(timetable: Timetable, tz: str, after: datetime, until: datetime) -> bool:
    """Whether a clock change in (after, until] moves the local times of an interval of real time.

    For example, 09:00 becomes 10:00. An interval of 20 minutes keeps its local times when the clocks change by an hour.
    Raises the errors of ``changes_met``.
    """
    if not isinstance(timetable, RealInterval):
        return False
    changes = clock_changes(zone(tz), require_aware(after), require_aware(until))
    return any(size % timetable.step for _instant, size in changes)


def effect_on(timetable: Timetable, tz: str, run: datetime) -> tuple[Effect, int] | None:
    """The effect of a clock change on ``run``, an instant at which the schedule fires.

    Returns the effect and the pass of ``run`` (1 or 2); None if no clock change affects ``run``. MOVED means that the
    reading is skipped, so the run comes at the end of the gap. ONCE and TWICE mean that the reading is repeated. An
    interval of real time follows real time, so TWICE tells in which pass it runs. Raises the errors of ``changes_met``.
    """
    info, run = zone(tz), require_aware(run)
    wall = run.astimezone(info).replace(tzinfo=None, fold=0)
    first, second = instants(wall, info)
    follows_real_time = isinstance(timetable, RealInterval) or timetable.interval
    if first < second:
        return (Effect.TWICE if follows_real_time else Effect.ONCE), 1 if run == first else 2
    if isinstance(timetable, RealInterval):
        return None
    minute = wall.replace(second=0, microsecond=0)
    if not count_readings(timetable, minute - _MINUTE, minute):
        return Effect.MOVED, 1
    return None
