"""Records what a pause left out: one skipped execution when the pause ends, as after a time without a producer.

The occurrences are computed from the former plan, like missed occurrences (see `execution.planning`). If the times of a
schedule are edited during a pause, the edit records what the former times left out until then.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduling.conf import get_conf
from scheduling.core import skip_reasons
from scheduling.core.cron import CronError, ZoneError, parse, zone
from scheduling.core.lifecycle import Trigger
from scheduling.core.occurrences import cron_key, date_key, left_out
from scheduling.core.text import clean
from scheduling.execution.insert import execution_of, insert, skipped
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.plan import FIRST_INSTANT

_TICK = timedelta(microseconds=1)

MOST_ON_RECORD = 1_000
"""So many occurrences are looked for that were claimed while the pause began."""

_Found = tuple[datetime, int, str, Trigger]
"""The first occurrence that was left out, how many there are, and the key and trigger of the first."""


def record_left_out(row: Scheduler, after: Scheduler, now: datetime) -> bool:
    """Record the occurrences that a pause has left out up to now, as one skipped execution.

    The caller is about to resume the schedule, or to change its times, and holds a lock on the row. Nothing is recorded
    if the schedule is not paused, or if nothing fell due.

    Args:
        row: the schedule as it is stored, with its former plan.
        after: the same schedule with its new times and status.

    Returns:
        Whether an occurrence that fell due before the pause, and that no producer has claimed, is among those recorded.
        The caller then plans the next run anew.
    """
    found, drops_due = _left_out(row, after, now)
    if found is None:
        return False
    first, count, key, trigger = found
    reason = clean(_reason(row, count, now), 2_000)
    columns = skipped(now, reason, count)
    insert([execution_of(row, now, execution_key=key, scheduled_at=first, trigger=trigger.value, **columns)])
    return drops_due


def drops_due(row: Scheduler, after: Scheduler, now: datetime) -> bool:
    """What `record_left_out` would return. Nothing is written."""
    return _left_out(row, after, now)[1]


def _left_out(row: Scheduler, after: Scheduler, now: datetime) -> tuple[_Found | None, bool]:
    """What `record_left_out` records, and what it returns."""
    since = row.left_out_since
    if since is None or row.paused_at is None:
        return None, False
    first = row.next_nominal_at or row.next_run_at
    kept = first if first is not None and first <= now else None
    if kept is not None:
        since = min(since, kept - _TICK)
    found = _found(row, after, max(since, FIRST_INSTANT), now, kept)
    return _without_those_on_record(row, after, found, now), found is not None and kept is not None


def _without_those_on_record(row: Scheduler, after: Scheduler, found: _Found | None, now: datetime) -> _Found | None:
    """What is left without the first ones that are on record.

    The process that paused the schedule read the clock, and then waited for the row, which a claim had locked. So the
    first occurrences after the beginning of the pause may have been claimed.
    """
    rows, counted = SchedulerExecution.objects.filter(scheduler=row.pk), 0
    for _ in range(MOST_ON_RECORD):
        if found is None:
            break
        if not counted:
            missed = rows.filter(execution_key=found[2]).values_list("missed", flat=True).first()
            if missed is None:
                break
            counted = max(missed, 1)
        found, counted = _found(row, after, found[0], now), counted - 1
    return found


def left_out_of(row: Scheduler, now: datetime) -> tuple[datetime, int] | None:
    """The first occurrence that the present pause has left out up to now, and how many there are; None if none."""
    since = row.left_out_since
    if row.status or since is None:
        return None
    found = _found(row, row, max(since, FIRST_INSTANT), now)
    return None if found is None else found[:2]


def _found(
    row: Scheduler, after: Scheduler, since: datetime, now: datetime, kept: datetime | None = None
) -> _Found | None:
    """The first occurrence that was left out, how many there are, and the key and trigger of the first.

    Args:
        since: it and those that follow are later than this.
        kept: the occurrence that was due before the pause, and that no producer has claimed; None if there is none.
    """
    if (date := row.planned_date_time) is not None:
        # If the schedule keeps its date, the producer decides whether the occurrence still runs.
        is_due = since < date <= now and not (after.status and after.date_time == date)
        if kept is not None and kept != date:
            # An occurrence of an expression that an edit has replaced with the date.
            return kept, 1 + is_due, cron_key(kept), Trigger.CRON
        return (date, 1, date_key(date), Trigger.DATE) if is_due else None
    edited: datetime | None = None
    try:
        tz = row.planned_timezone or get_conf().timezone
        # What lies outside the bounds of the schedule is no occurrence.
        until = min(now, row.planned_active_until) if row.planned_active_until is not None else now
        if row.planned_at is not None and since < row.planned_at:
            # The schedule has its times since an edit. Of the former times, it has kept at most one occurrence.
            edited = kept if kept is not None and kept <= row.planned_at else None
            since = row.planned_at
        since = max(since, row.planned_active_from - _TICK) if row.planned_active_from is not None else since
        found = left_out(parse(row.planned_schedule or ""), tz, since, until) if since < until else None
        if edited is not None:
            found = edited, 1 + (found[1] if found is not None else 0)
    except (CronError, ZoneError):
        return None  # plain SQL wrote the former times, and no producer could plan them
    return None if found is None else (*found, cron_key(found[0]), Trigger.CRON)


def _reason(row: Scheduler, count: int, now: datetime) -> str:
    try:
        info = zone(row.planned_timezone or get_conf().timezone)
    except ZoneError:
        info = zone("UTC")
    since = max(filter(None, (row.paused_at, row.left_out_since)), default=now)
    return skip_reasons.paused(since, now, count, info, row.paused_by, row.pause_reason)
