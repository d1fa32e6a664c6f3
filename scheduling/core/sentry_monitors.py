"""What Sentry's cron monitors are told about a schedule: its slug, and a configuration for those that are new.

Sentry reads expressions of five fields with the package cronsim, which follows Debian's cron in the same points as our
dialect does, also when the clocks change (tests compare the two). It knows no one-time schedules. Its intervals have no
fixed beginning: it expects the next check-in one interval after the last one. Ours is never later than that, so Sentry
raises no false alarm. It knows no intervals of seconds, and none of several weekdays.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from scheduling.core.cron import Cron, CronError, Timetable, parse
from scheduling.core.intervals import FIRST_DAY, DayInterval, RealInterval

SLUG_LENGTH = 50

MOST_MINUTES = 40_320
"""The greatest margin and the longest time that Sentry accepts: 28 days."""

ARRIVAL = timedelta(minutes=1)
"""How long a check-in may take to arrive: one that was refused is sent again after 15 s and 30 s."""

_OTHER = re.compile(r"[^a-z0-9_-]+")


def slug(name: str, target: str, schedule: int) -> str:
    """The slug of a schedule's monitor: at most 50 lower-case letters, digits, hyphens and underscores.

    Args:
        name: the name of the schedule. The slug of a named schedule is the same in each installation.
        target: the name of the target, for a schedule without a name.
        schedule: the primary key of the schedule.
    """
    if name:
        found = _plain(name)
        # Two names may look the same as slugs, and Sentry takes no slug of digits alone.
        if found == name and len(found) <= SLUG_LENGTH and not found.isdecimal():
            return found
        return f"{found[: SLUG_LENGTH - 7] or 'schedule'}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
    tail = f"-{schedule}"
    return f"{_plain(target)[: SLUG_LENGTH - len(tail)] or 'schedule'}{tail}"


def _plain(text: str) -> str:
    return _OTHER.sub("-", text.lower()).strip("-")


def monitor_config(
    expression: str, zone: str, late_after: timedelta, time_limit: int, delays: Sequence[int]
) -> dict[str, Any] | None:
    """The configuration of a monitor; None if Sentry cannot have one: the schedule has one date, or cannot be read.

    Sentry knows nothing like some intervals, which have none either.

    Args:
        expression: the cron expression or the interval; empty for a one-time schedule.
        late_after: how long after its due time a run counts as late.
        time_limit: the time limit of an attempt in seconds; 0 means none.
        delays: the delays of the retries in milliseconds.
    """
    try:
        schedule = _schedule(parse(expression)) if expression else None
    except CronError:
        schedule = None
    if schedule is None:
        return None
    return {
        "schedule": schedule,
        "timezone": zone,
        "checkin_margin": _minutes(late_after + ARRIVAL),
        "max_runtime": longest_minutes(time_limit, delays),
        # A run that fails has used up its retries, so the first failure is one that a person must see.
        "failure_issue_threshold": 1,
        "recovery_threshold": 1,
    }


def _schedule(timetable: Timetable) -> dict[str, Any] | None:
    if isinstance(timetable, Cron):
        return {"type": "crontab", "value": _crontab(timetable)}
    if isinstance(timetable, RealInterval):
        return None if timetable.has_seconds else _interval(timetable.step // timedelta(minutes=1), "minute")
    if timetable.number == 1 and timetable.start == FIRST_DAY:
        return {"type": "crontab", "value": _crontab_of_days(timetable)}
    if len(timetable.weekdays) > 1:
        return None
    return _interval(timetable.number, "week" if timetable.weekdays else "day")


def _interval(number: int, unit: str) -> dict[str, Any]:
    return {"type": "interval", "value": number, "unit": unit}


def _crontab_of_days(interval: DayInterval) -> str:
    """The cron expression of an interval of one day or one week, which has the same occurrences."""
    weekdays = ",".join(str((day + 1) % 7) for day in interval.weekdays) or "*"
    return f"{interval.minutes[0]} {interval.hours[0]} * * {weekdays}"


def _crontab(cron: Cron) -> str:
    """The expression, with numbers in place of steps that do not begin with a star: cronsim reads 0-0/5 as 0/5."""
    values = (cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays)
    fields = []
    for place, (text, numbers) in enumerate(zip(cron.expression.split(), values, strict=True)):
        is_step = "/" in text and not text.startswith("*")
        last = ["L"] if place == 2 and cron.last_day else []
        fields.append(",".join([*map(str, numbers), *last]) if is_step else text)
    return " ".join(fields)


def longest_minutes(time_limit: int, delays: Sequence[int]) -> int:
    """The longest time of a run with all its retries, in minutes. Without a time limit, it is Sentry's maximum.

    Without this value, Sentry takes 30 minutes for each monitor.
    """
    if not time_limit:
        return MOST_MINUTES
    whole = timedelta(seconds=time_limit) * (len(delays) + 1) + timedelta(milliseconds=sum(delays))
    return _minutes(whole + ARRIVAL)


def _minutes(span: timedelta) -> int:
    return max(1, min(math.ceil(span.total_seconds() / 60), MOST_MINUTES))
