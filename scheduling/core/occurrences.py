"""What is due: the occurrences of a schedule up to now, their keys, and what becomes of those that were missed.

One rule for time that passed without a producer: the latest missed occurrence runs once, if it is not older than the
catch-up window; all others are counted in one record that says how many and why. Nobody wants 1,440 backups after a
day of downtime, and nobody wants to lose the last one silently.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from scheduling.core.cron import Cron, count_between, last_between, next_after, parse
from scheduling.core.zones import require_aware

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Due:
    """An occurrence to run now: its instant in UTC, and its execution key."""

    instant: datetime
    key: str


@dataclass(frozen=True, slots=True)
class Missed:
    """Occurrences that will not run: how many, the first and last instant (UTC), and a sentence that says why.

    ``key`` is the key of the first, so that recording the same stretch twice meets the unique key.
    """

    first: datetime
    last: datetime
    count: int
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a tick does with one schedule. ``next_run_at`` (UTC) is None when nothing will be due again."""

    run: Due | None
    missed: Missed | None
    next_run_at: datetime | None


def cron_key(instant: datetime) -> str:
    """The execution key of a cron occurrence: ``cron-2025-12-12-8-0``, in UTC, without padding.

    UTC, because a local reading comes twice when the clocks go back, and changes with the schedule's zone. Raises
    ValueError for a naive instant.
    """
    return f"cron-{_stamp(instant)}"


def date_key(instant: datetime) -> str:
    """The execution key of a one-time occurrence: ``date-2025-12-12-8-0``, with ``-s`` appended if s is not 0.

    It follows the date, so that a schedule moved to a new date may run again. Raises ValueError for a naive instant.
    """
    return f"date-{_stamp(instant)}"


_RERUN = re.compile(r"manual-[0-9a-f-]{36}-of-([0-9]{1,16})")


def manual_key(uuid: UUID, of: int | None = None) -> str:
    """The execution key of "run now": ``manual-<uuid>``, the uuid being the caller's own if it gave one.

    Args:
        of: the execution that is run again, if it is one: ``manual-<uuid>-of-<key>`` says so for good.
    """
    # 43 characters and 4 leave 17 of the column's 64, for a number of at most 16 digits.
    return f"manual-{uuid}" if of is None else f"manual-{uuid}-of-{of}"


def rerun_of(key: str) -> int | None:
    """The execution that the one with this key is a rerun of; None for all others."""
    found = _RERUN.fullmatch(key)
    return int(found[1]) if found else None


def first_run(schedule: str, date_time: datetime | None, tz: str, now: datetime) -> datetime | None:
    """``next_run_at`` of a row just created or edited.

    With a cron expression the first occurrence after ``now``; else ``date_time`` as it is, even in the past, which is
    for validation to refuse; else None. Raises CronError, ZoneError, or ValueError for a naive argument.
    """
    if schedule:
        return next_after(parse(schedule), tz, now)
    if date_time is not None:
        require_aware(date_time)
    return date_time


def plan_cron(cron: Cron, tz: str, due_from: datetime, now: datetime, catch_up: timedelta) -> Plan:
    """Plan a cron schedule whose stored ``next_run_at`` is ``due_from``.

    Its occurrences are ``due_from`` and every later one up to and with ``now``. The latest runs if it is at most
    ``catch_up`` old; all that do not run are one Missed. The plan's ``next_run_at`` is later than all of them and
    than ``now``. If ``due_from`` is still to come, nothing is due and it stays. Years of downtime cost milliseconds.
    Raises ValueError for naive instants, and CronError or ZoneError for a schedule that cannot be evaluated.
    """
    due_from, now = require_aware(due_from), require_aware(now)
    if now < due_from:
        return Plan(run=None, missed=None, next_run_at=due_from)
    latest, following = due_from, next_after(cron, tz, due_from)
    if following <= now:
        latest = last_between(cron, tz, due_from, now) or due_from
        following = next_after(cron, tz, now)
    if now - latest > catch_up:
        count = 1 + count_between(cron, tz, due_from, latest)
        why = f"no producer ran within the catch-up window of {_spoken(catch_up)}"
        return Plan(run=None, missed=_missed(due_from, latest, count, why), next_run_at=following)
    missed = None
    if latest > due_from:
        last = last_between(cron, tz, due_from, latest - _TICK) or due_from
        missed = _missed(due_from, last, 1 + count_between(cron, tz, due_from, last), "no producer was running")
    return Plan(run=Due(latest, cron_key(latest)), missed=missed, next_run_at=following)


def plan_date(date_time: datetime, now: datetime, catch_up: timedelta) -> Plan:
    """Plan a one-time schedule: it runs if at most ``catch_up`` old, else it is Missed; then nothing is due again.

    If ``date_time`` is still to come, nothing is due and it stays. Raises ValueError for naive instants.
    """
    date_time, now = require_aware(date_time), require_aware(now)
    if now < date_time:
        return Plan(run=None, missed=None, next_run_at=date_time)
    key = date_key(date_time)
    if now - date_time <= catch_up:
        return Plan(run=Due(date_time, key), missed=None, next_run_at=None)
    window = _spoken(catch_up)
    reason = f"Missed the run at {_shown(date_time)} UTC: no producer ran within the catch-up window of {window}."
    return Plan(run=None, missed=Missed(date_time, date_time, 1, key, reason), next_run_at=None)


def _missed(first: datetime, last: datetime, count: int, why: str) -> Missed:
    if count == 1:
        what = f"Missed 1 occurrence at {_shown(first)} UTC"
    else:
        what = f"Missed {count} occurrences from {_shown(first)} to {_shown(last)} UTC"
    return Missed(first, last, count, cron_key(first), f"{what}: {why}.")


def _stamp(instant: datetime) -> str:
    utc = require_aware(instant)
    stamp = f"{utc.year}-{utc.month}-{utc.day}-{utc.hour}-{utc.minute}"
    # Only when there are any, so that one instant has one key.
    return f"{stamp}-{utc.second}" if utc.second else stamp


def _shown(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S}" if instant.second else f"{instant:%Y-%m-%d %H:%M}"


def _spoken(length: timedelta) -> str:
    """A length of time in its largest whole unit: "1 day", "90 minutes"."""
    seconds = int(length.total_seconds())
    units = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
    whole = ((unit, seconds // size) for unit, size in units if seconds >= size and not seconds % size)
    unit, number = next(whole, ("second", seconds))
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
