"""Decides which occurrences of a schedule are due and which are missed, and makes their execution keys.

After a time without a producer, the latest missed occurrence runs once, if it is not older than the catch-up window.
One record counts all the other missed occurrences and says why they did not run. For example, a backup runs every
minute, and no producer runs for a day. After this day the backup starts once, not 1,440 times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from uuid import UUID

from scheduling.core import skip_reasons
from scheduling.core.cron import CronError, Timetable, count_between, last_between, next_after, parse
from scheduling.core.zones import require_aware, zone

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Due:
    """An occurrence to run now, with its nominal instant in UTC and its execution key.

    `assigned` is the instant at which it was to start, if this is a later one: its schedule is spread, or a calendar
    held it.
    """

    instant: datetime
    key: str
    assigned: datetime | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """Occurrences that will not run: their number, their first and last instant (UTC), and the reason as a sentence.

    ``key`` is the execution key of the first occurrence. If the same occurrences are recorded twice, the unique key
    refuses the second record.
    """

    first: datetime
    last: datetime
    count: int
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a producer does with one schedule now. ``next_run_at`` (UTC) is None if no further occurrence follows.

    The last three values are those of a schedule with rules of its own (``core.planned``):

    Args:
        earlier: further occurrences that run, all before ``run``.
        skips: further occurrences that do not run.
        next_nominal_at: the first nominal instant (UTC) that is not on record yet; None if it is ``next_run_at``.
    """

    run: Due | None
    missed: Missed | None
    next_run_at: datetime | None
    earlier: tuple[Due, ...] = ()
    skips: tuple[Missed, ...] = ()
    next_nominal_at: datetime | None = None

    @property
    def runs(self) -> tuple[Due, ...]:
        """All occurrences that run, in their order."""
        return self.earlier if self.run is None else (*self.earlier, self.run)

    @property
    def all_missed(self) -> tuple[Missed, ...]:
        """All occurrences that do not run."""
        return self.skips if self.missed is None else (self.missed, *self.skips)


def cron_key(instant: datetime) -> str:
    """The execution key of an occurrence of a cron expression or an interval, without padding: ``cron-2025-12-12-8-0``.

    Seconds are appended if they are not 0. The key contains the time in UTC, because a local time occurs twice when the
    clocks go back. A local time would also change if the zone of the schedule changed. Raises ValueError for a naive
    instant.
    """
    return f"cron-{_stamp(instant)}"


def date_key(instant: datetime) -> str:
    """The execution key of a one-time occurrence, in UTC: ``date-2025-12-12-8-0``.

    Seconds are appended if they are not 0. If the date of a schedule changes, the key changes too, so the schedule may
    run again. Raises ValueError for a naive instant.
    """
    return f"date-{_stamp(instant)}"


def backfill_key(instant: datetime) -> str:
    """The execution key of a run that a backfill makes for this instant, in UTC: ``backfill-2025-12-12-8-0``.

    It is not the key of the occurrence itself. A missed or paused occurrence has a skipped row with that key, and a
    backfill is mostly asked for such occurrences. So each instant has at most one run of its own and one of a backfill.
    Raises ValueError for a naive instant.
    """
    return f"backfill-{_stamp(instant)}"


_RERUN = re.compile(r"manual-[0-9a-f-]{36}-of-([0-9]{1,16})")


def manual_key(uuid: UUID, of: int | None = None) -> str:
    """The execution key of "run now" and of a rerun: ``manual-<uuid>`` or ``manual-<uuid>-of-<id>``.

    Args:
        uuid: the caller's idempotency key, or a random UUID.
        of: for a rerun, the id of the execution that is run again.
    """
    # The column holds 64 characters. The id has at most 16 digits (see _RERUN), so the key has at most 63 characters.
    return f"manual-{uuid}" if of is None else f"manual-{uuid}-of-{of}"


def rerun_of(key: str) -> int | None:
    """The id of the execution that a rerun ran again; None if ``key`` is not the execution key of a rerun."""
    found = _RERUN.fullmatch(key)
    return int(found[1]) if found else None


def first_run(schedule: str, date_time: datetime | None, tz: str, now: datetime) -> datetime | None:
    """The ``next_run_at`` of a schedule that was just created or edited.

    For a cron expression, the result is the first occurrence after ``now``. Without a cron expression, the result is
    ``date_time``, even if ``date_time`` is None or in the past. (Validation refuses a date in the past.) Raises
    CronError or ZoneError for an invalid schedule, and ValueError for a naive argument.
    """
    if schedule:
        return next_after(parse(schedule), tz, now)
    if date_time is not None:
        require_aware(date_time)
    return date_time


def plan_cron(
    cron: Timetable, tz: str, due_from: datetime, now: datetime, catch_up: timedelta, edited_at: datetime | None = None
) -> Plan:
    """Plan a cron schedule whose stored ``next_run_at`` is ``due_from``.

    The due occurrences are ``due_from`` and all later occurrences up to and including ``now``. The latest occurrence
    runs if it is at most ``catch_up`` old. One ``Missed`` counts all occurrences that do not run. The plan's
    ``next_run_at`` is later than ``now``. If ``due_from`` is in the future, nothing is due, and ``next_run_at`` remains
    ``due_from``. A call lasts only milliseconds, even after years of downtime.

    ``edited_at`` is when the schedule got these times. If ``due_from`` is not later, it is an occurrence of the former
    times that the edit has kept. The occurrences that follow it are later than ``edited_at``.

    Raises ValueError for naive instants, and CronError or ZoneError for a schedule that cannot be evaluated.
    """
    due_from, now = require_aware(due_from), require_aware(now)
    if now < due_from:
        return Plan(run=None, missed=None, next_run_at=due_from)
    begin = due_from if edited_at is None else max(due_from, edited_at)
    latest, following = due_from, next_after(cron, tz, begin)
    if following <= now:
        latest = last_between(cron, tz, begin, now) or due_from
        following = next_after(cron, tz, now)
    if now - latest > catch_up:
        count = 1 + (count_between(cron, tz, begin, latest) if latest > begin else 0)
        why = skip_reasons.too_late(catch_up)
        return Plan(run=None, missed=_missed(due_from, latest, count, why, zone(tz)), next_run_at=following)
    missed = None
    if latest > due_from:
        last = last_between(cron, tz, begin, latest - _TICK) or due_from
        count = 1 + (count_between(cron, tz, begin, last) if last > begin else 0)
        missed = _missed(due_from, last, count, skip_reasons.NO_PRODUCER, zone(tz))
    return Plan(run=Due(latest, cron_key(latest)), missed=missed, next_run_at=following)


def plan_date(date_time: datetime, now: datetime, catch_up: timedelta) -> Plan:
    """Plan a one-time schedule. Its occurrence runs if it is at most ``catch_up`` old; otherwise it is missed.

    In both cases the plan's ``next_run_at`` is None. If ``date_time`` is in the future, nothing is due, and
    ``next_run_at`` remains ``date_time``. Raises ValueError for naive instants.
    """
    date_time, now = require_aware(date_time), require_aware(now)
    if now < date_time:
        return Plan(run=None, missed=None, next_run_at=date_time)
    key = date_key(date_time)
    if now - date_time <= catch_up:
        return Plan(run=Due(date_time, key), missed=None, next_run_at=None)
    reason = skip_reasons.missed_date(date_time, catch_up)
    return Plan(run=None, missed=Missed(date_time, date_time, 1, key, reason), next_run_at=None)


def left_out(cron: Timetable, tz: str, after: datetime, until: datetime) -> tuple[datetime, int] | None:
    """The first occurrence in (after, until], in UTC, and how many there are; None if there is none.

    A call lasts only milliseconds, even after years. Raises ValueError for naive arguments, and ZoneError for an
    unknown zone.
    """
    try:
        first = next_after(cron, tz, after)
    except CronError:
        return None
    return (first, count_between(cron, tz, after, until)) if first <= require_aware(until) else None


def _missed(first: datetime, last: datetime, count: int, why: str, info: tzinfo) -> Missed:
    return Missed(first, last, count, cron_key(first), skip_reasons.missed(first, last, count, why, info))


def _stamp(instant: datetime) -> str:
    utc = require_aware(instant)
    stamp = f"{utc.year}-{utc.month}-{utc.day}-{utc.hour}-{utc.minute}"
    # Seconds are left out if they are 0, so that each instant has only one key.
    return f"{stamp}-{utc.second}" if utc.second else stamp
