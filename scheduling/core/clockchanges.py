"""What a clock change does to a schedule: which of its readings are skipped or come twice, and what follows.

The rule itself is ``cron``'s; this module only says, for people, where it will be felt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from scheduling.core.cron import Cron, count_readings
from scheduling.core.zones import clock_changes, instants, require_aware, zone

_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)


class Effect(Enum):
    """What becomes of the runs whose reading a clock change skips or repeats."""

    MOVED = "moved"
    """Fixed, skipped: one run at the first instant after the gap."""
    ONCE = "once"
    """Fixed, repeated: the first pass only."""
    DROPPED = "dropped"
    """Interval, skipped: those readings do not come."""
    TWICE = "twice"
    """Interval, repeated: both passes."""
    STEADY = "steady"
    """Interval in every hour: real time goes on, and so does the schedule."""


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A clock change that meets a schedule.

    Args:
        instant: the change, in UTC.
        start, end: the naive local readings [start, end) that are skipped or repeated.
        skipped: whether they are skipped; else repeated.
        readings: how many wall-clock minutes among them match the expression.
    """

    instant: datetime
    start: datetime
    end: datetime
    skipped: bool
    readings: int
    effect: Effect


def changes_met(cron: Cron, tz: str, after: datetime, until: datetime) -> list[ClockChange]:
    """The clock changes in (after, until] among whose readings the schedule has some, ascending.

    Raises ValueError for naive arguments and ZoneError for the name.
    """
    info, found = zone(tz), list[ClockChange]()
    for instant, size in clock_changes(info, require_aware(after), require_aware(until)):
        before = (instant - _SECOND).astimezone(info).replace(tzinfo=None, fold=0) + _SECOND
        now = instant.astimezone(info).replace(tzinfo=None, fold=0)
        skipped = now > before
        start, end = (before, now) if skipped else (now, now + size)
        readings = count_readings(cron, start - _MINUTE, end - _MINUTE)
        if readings:
            found.append(ClockChange(instant, start, end, skipped, readings, _effect(cron, skipped)))
    return found


def _effect(cron: Cron, skipped: bool) -> Effect:
    if not cron.interval:
        return Effect.MOVED if skipped else Effect.ONCE
    if len(cron.hours) == 24:
        return Effect.STEADY
    return Effect.DROPPED if skipped else Effect.TWICE


def effect_on(cron: Cron, tz: str, run: datetime) -> tuple[Effect, int] | None:
    """What a clock change has done to one of the schedule's own instants, and in which pass it lies (1 or 2).

    MOVED: the local reading is not one of the expression's, the gap's end stands for it. ONCE and TWICE: the reading
    comes twice. None: an ordinary reading. Raises as ``changes_met`` does.
    """
    info, run = zone(tz), require_aware(run)
    wall = run.astimezone(info).replace(tzinfo=None, fold=0)
    first, second = instants(wall, info)
    if first < second:
        return (Effect.TWICE if cron.interval else Effect.ONCE), 1 if run == first else 2
    minute = wall.replace(second=0, microsecond=0)
    if not count_readings(cron, minute - _MINUTE, minute):
        return Effect.MOVED, 1
    return None
