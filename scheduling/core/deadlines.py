"""Decides whether a schedule will be finished by a time of the day, from how long its runs usually take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from scheduling.core.assigned import Assigned
from scheduling.core.cron import Timetable, last_between
from scheduling.core.durations import percentile
from scheduling.core.expected import last_to_run
from scheduling.core.zones import require_aware, resolve, zone

RUNS_FOR_FORECAST = 5
"""With fewer runs, nothing is known about the duration. Then the alert begins a minute before the deadline."""

LEAST_REMAINING = 60.0
"""A run that has not ended is taken to need so many further seconds at least. So an alert begins before the deadline,
even if nothing else has told of it."""

FAR = 5.0
"""A run is no usual run if it took longer than the median by so many times the distance from the first quartile to the
median. The upper half of the durations is not asked, because slow nights are in it."""

MOST_TIMES = 1.8
"""A usual run takes at most so many times the median."""

CLEARLY = 1.25
"""A run that takes so many times the longest usual run is taken for one of the runs that were not usual."""

FURTHER = 0.05
"""A run that takes longer than each earlier run is taken to need this share of its present duration in addition."""

LOOK_BACK = timedelta(days=7)
"""So long a run that is not finished is told, if no later run has finished."""

_DAY = timedelta(days=1)
_TICK = timedelta(microseconds=1)
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True)
class Deadline:
    """A deadline, and the last occurrence before it.

    Args:
        day: the local day of the deadline.
        instant: the deadline, in UTC.
        occurrence: the last occurrence before it, in UTC.
    """

    day: date
    instant: datetime
    occurrence: datetime


@dataclass(frozen=True)
class Deadlines:
    """What is known between two deadlines.

    Args:
        passed, following: the last deadline that has passed, and the next one, in UTC.
        found: those of these two that follow an occurrence. The occurrence of the next one may not be due yet.
    """

    passed: datetime
    following: datetime
    found: Sequence[Deadline]

    def due(self, now: datetime) -> list[Deadline]:
        """Those of which the occurrence is due."""
        return [one for one in self.found if one.occurrence <= now]

    def holds(self, now: datetime) -> bool:
        """Whether this is still so."""
        return self.passed <= now < self.following


def time_of_day(text: object) -> time:
    """The time of a text such as `06:30`.

    Raises:
        ValueError: it is no such text. The message is a sentence.
    """
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"The time of the day must be from 00:00 to 23:59, such as 06:30, not {text!r:.20}.")
    return time(int(found[1]), int(found[2]))


def deadlines(
    timetable: Timetable | None,
    date_time: datetime | None,
    tz: str,
    at: time,
    now: datetime,
    own: Assigned | None = None,
) -> Deadlines:
    """The last deadline that has passed with an occurrence within `LOOK_BACK` before it, and the next deadline.

    A time of the day that the clocks skip is the first instant after the gap. One that they repeat is the first of both
    instants.

    Args:
        timetable: the cron expression or the interval of the schedule; None if it runs once, at `date_time`.
        tz: the zone of the schedule.
        own: the assigned times of a schedule with rules of its own. An occurrence that a calendar excludes has no
            deadline. One that is spread or held has the deadline of its nominal instant.

    Raises:
        CronError, ZoneError: the schedule has no usable times.
    """
    info, now = zone(tz), require_aware(now)
    today = now.astimezone(info).date()
    first = today - LOOK_BACK - 2 * _DAY
    days = [first + number * _DAY for number in range((today - first).days + 3)]
    # After a gap of a whole day, two days may have the same deadline.
    by_instant = {resolve(datetime.combine(day, at), info): day for day in days}
    instants = sorted(by_instant)
    passed = max(instant for instant in instants if instant <= now)
    following = min(instant for instant in instants if instant > now)
    found = []
    for after, until in ((passed - LOOK_BACK, passed), (passed, following)):
        # An occurrence at a deadline belongs to the next one.
        if own is not None:
            occurrence = last_to_run(own, after - _TICK, until - _TICK)
        else:
            occurrence = _last(timetable, date_time, tz, after - _TICK, until - _TICK)
        if occurrence is not None:
            deadline = min(instant for instant in instants if instant > occurrence)
            found.append(Deadline(by_instant[deadline], deadline, occurrence))
    return Deadlines(passed, following, found)


def _last(
    timetable: Timetable | None, date_time: datetime | None, tz: str, after: datetime, until: datetime
) -> datetime | None:
    if timetable is not None:
        return last_between(timetable, tz, after, until)
    instant = None if date_time is None else date_time.astimezone(UTC)
    return instant if instant is not None and after < instant <= until else None


def usual_is_known(durations: Sequence[float]) -> bool:
    """Whether there are enough durations to say how long a usual run takes."""
    return len(durations) >= RUNS_FOR_FORECAST


def expected_seconds(durations: Sequence[float], elapsed: float = 0.0) -> float:
    """How long a run will take in total, at the 90th percentile of those that took as long already.

    Runs that were far from usual say nothing about a usual night, so they count only when the run is clearly one of
    them. Otherwise each night would be expected to be slow after a few slow ones.

    Args:
        durations: the durations of the last successful runs of the schedule, in seconds.
        elapsed: for how long it has been running; 0 if it has not started.
    """
    least = elapsed + LEAST_REMAINING
    if not usual_is_known(durations):
        return least
    ordered = sorted(durations)
    lower, median = percentile(ordered, 0.25) or 0.0, percentile(ordered, 0.5) or 0.0
    fence = min(median + FAR * (median - lower), median * MOST_TIMES)
    usual = [seconds for seconds in ordered if seconds <= fence]
    longest = usual[-1]
    if elapsed <= longest:
        high = percentile(usual, 0.9) or longest
        return max(least, high if elapsed <= high else longest)
    slow = percentile((seconds for seconds in ordered if seconds > elapsed), 0.25)
    if slow is not None and elapsed > longest * CLEARLY:
        return max(least, slow)
    return max(least, elapsed * (1 + FURTHER))


def will_be_late(
    deadline: datetime, now: datetime, durations: Sequence[float], started_at: datetime | None, may_start_at: datetime
) -> bool:
    """Whether a run that is not finished misses its deadline, or has missed it.

    Args:
        started_at: when the present attempt has started; None if none runs.
        may_start_at: when the next attempt may start, if none runs.
    """
    if now >= deadline:
        return True
    if started_at is not None:
        elapsed = max(0.0, (now - started_at).total_seconds())
        remaining = expected_seconds(durations, elapsed) - elapsed
    else:
        remaining = max(0.0, (may_start_at - now).total_seconds()) + expected_seconds(durations)
    return remaining > (deadline - now).total_seconds()
