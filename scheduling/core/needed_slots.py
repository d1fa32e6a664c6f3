"""How many slots a queue needs for the runs that wait and those of the next minutes."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from scheduling.core.cron import CronError, count_between, parse
from scheduling.core.intervals import RealInterval

AHEAD = timedelta(minutes=5)
"""The runs that are due within this time count, and all of them should end within this time."""

UNKNOWN_SECONDS = 30.0
"""How long a run is taken to need if no run has been tallied yet."""


def needed_slots(running: int, waiting: int, seconds: float) -> int:
    """The number of slots: those that are busy, and as many as end the waiting runs within `AHEAD`.

    A run uses one slot, so long runs never need more slots than there are runs.

    Args:
        waiting: how many runs wait, or are due within `AHEAD`.
        seconds: how long a run usually takes.
    """
    work = math.ceil(waiting * max(seconds, 0.0) / AHEAD.total_seconds())
    return running + min(waiting, max(work, 1 if waiting else 0))


def due_ahead(expression: str, now: datetime) -> int:
    """How many occurrences fall into the time ahead, for a schedule whose next occurrence does: at least 1.

    Of a cron expression, only the minutes are compared. The next occurrence says that the hour and the day match.

    Args:
        expression: empty for a one-time schedule.
    """
    try:
        timetable = parse(expression) if expression else None
    except CronError:
        return 1
    if timetable is None:
        return 1
    if isinstance(timetable, RealInterval):
        return max(1, count_between(timetable, "UTC", now, now + AHEAD))
    ahead = {(now + timedelta(minutes=number)).minute for number in range(1, 1 + int(AHEAD.total_seconds()) // 60)}
    return max(1, len(ahead.intersection(timetable.minutes)))
