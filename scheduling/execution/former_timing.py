"""Records what a schedule has not started yet, before an edit replaces its times or its rules.

No producer may have run for a while. An occurrence may also be due and wait: its schedule is spread, or a calendar
holds it. Others are excluded, and are put on record with the next one that runs. An edit decides about all of them by
the former times and rules.
"""

from __future__ import annotations

from datetime import datetime

from scheduling.conf import get_conf
from scheduling.core import skip_reasons
from scheduling.core.assigned import Assigned
from scheduling.core.cron import CronError, ZoneError, zone
from scheduling.core.lifecycle import Trigger
from scheduling.core.occurrences import cron_key, date_key
from scheduling.core.settled import Settled, settle
from scheduling.execution.insert import execution_of, insert, skipped
from scheduling.models import Scheduler
from scheduling.models.exclusions import exclusions_of, planned_exclusions
from scheduling.models.own_timing import Former, assigned_of


def first_of(row: Scheduler) -> datetime | None:
    """The nominal instant of the first occurrence that is not on record; None if none is planned."""
    return row.next_nominal_at or row.next_run_at


def settle_former(row: Scheduler, now: datetime, *, times_change: bool, edited: Scheduler) -> None:
    """Record what does not run, if an occurrence is due by the former times and rules of the schedule.

    The latest occurrence that is free stays in `next_run_at`, where a producer finds it. The row is not saved.

    Args:
        row: the stored schedule, with its former plan. Its row is locked.
        times_change: whether the edit changes more than the status and the calendar.
        edited: the schedule after the edit.
    """
    settled = settled_of(row, now, times_change=times_change, edited=edited)
    if settled is None:
        return
    trigger = Trigger.CRON if Former(row).date_time is None else Trigger.DATE
    insert([
        execution_of(
            row, now, execution_key=missed.key, scheduled_at=missed.first, trigger=trigger.value,
            **skipped(now, missed.reason, missed.count),
        )
        for missed in settled.skips
    ])  # fmt: skip
    row.next_run_at, row.next_nominal_at = settled.kept, None


def settled_of(row: Scheduler, now: datetime, *, times_change: bool, edited: Scheduler) -> Settled | None:
    """What `settle_former` records and keeps; None if it leaves the row as it is. Nothing is written."""
    first = first_of(row)
    if first is None or first > now or not row.planned_status:
        return None
    try:
        former = Former(row)
        own = assigned_of(former, planned_exclusions(row)).since_edit(first, row.planned_at)
        following = None if times_change and not _same_date(former, edited) else _after_edit(edited, first)
        return settle(own, first, now, times_change=times_change, following=following)
    except (CronError, ZoneError, ValueError):
        return None  # plain SQL wrote the former times, and no producer could plan them


def _same_date(former: Former, edited: Scheduler) -> bool:
    """Whether the schedule runs at one date and time, before and after the edit. The new plan has this date again."""
    return former.date_time is not None and edited.date_time == former.date_time


def _after_edit(edited: Scheduler, first: datetime) -> Assigned | None:
    """The new rules; None if the schedule is paused, or if they cannot be used."""
    if not edited.status:
        return None
    try:
        return assigned_of(edited, exclusions_of([edited]).get(edited.pk)).since_edit(first, edited.planned_at)
    except (CronError, ZoneError, ValueError):
        return None


def record_dropped(row: Scheduler, due: datetime, now: datetime) -> None:
    """Record the occurrence that `settle_former` has kept, because the new times do not have it.

    It is not known whether plain SQL has edited the schedule before or after this instant. So it is on record.
    """
    former = Former(row)
    is_cron = former.date_time is None
    try:
        info = zone(former.timezone or get_conf().timezone)
    except ZoneError:
        return  # as in `settle_former`
    reason = skip_reasons.missed(due, due, 1, skip_reasons.EDITED, info)
    insert([
        execution_of(
            row, now, execution_key=cron_key(due) if is_cron else date_key(due), scheduled_at=due,
            trigger=(Trigger.CRON if is_cron else Trigger.DATE).value, **skipped(now, reason, missed=1),
        )
    ])  # fmt: skip
