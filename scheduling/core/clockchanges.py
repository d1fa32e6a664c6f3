"""What a clock change does to a schedule: which readings the change skips or repeats, and which runs it affects.

A reading is a wall-clock time that matches the schedule. The module ``cron`` holds the rule for clock changes; this
module only shows people which clock changes affect a schedule.
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
    """What happens to the runs whose reading a clock change skips or repeats."""

    MOVED = "moved"
    """A fixed job whose reading is skipped runs once, at the first instant after the gap."""
    ONCE = "once"
    """A fixed job whose reading is repeated runs only in the first pass."""
    DROPPED = "dropped"
    """An interval job does not run for readings that are skipped."""
    TWICE = "twice"
    """An interval job whose readings are repeated runs in both passes."""
    STEADY = "steady"
    """An interval job that runs in every hour follows real time, so the change has no effect on the job."""


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A clock change that affects a schedule.

    Args:
        instant: the change, in UTC.
        start, end: the naive local readings [start, end) that are skipped or repeated.
        skipped: True if these readings are skipped, False if they are repeated.
        readings: how many wall-clock minutes in [start, end) match the expression.
    """

    instant: datetime
    start: datetime
    end: datetime
    skipped: bool
    readings: int
    effect: Effect


def changes_met(cron: Cron, tz: str, after: datetime, until: datetime) -> list[ClockChange]:
    """The clock changes in (after, until] that skip or repeat readings of the schedule, ascending.

    Raises ValueError for naive arguments and ZoneError for an unknown zone.
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
    """The effect of a clock change on ``run`` (an instant at which the schedule fires), and the pass of ``run``.

    The effect MOVED means that the reading was skipped, so the run came at the end of the gap. ONCE and TWICE mean
    that the reading comes twice; the pass is then 1 or 2. The result is None if no clock change affected the run.
    Raises the errors of ``changes_met``.
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
