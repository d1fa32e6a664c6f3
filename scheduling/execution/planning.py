"""Records missed occurrences before a schedule is edited or paused, and plans schedules that plain SQL changed.

Missed occurrences are computed from the old plan, and the edit overwrites the old plan. So missed occurrences are
recorded before the edit is saved. The latest due occurrence stays in `next_run_at`, where a producer finds and claims
it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone as clock

from scheduling.core.cron import CronError, ZoneError, parse
from scheduling.core.text import clean
from scheduling.core.why_at import is_due
from scheduling.core.words import in_english
from scheduling.execution.former_timing import first_of, record_dropped, settle_former
from scheduling.execution.pauses import record_left_out
from scheduling.execution.revisions import note_found
from scheduling.logs import get_logger
from scheduling.models import Scheduler
from scheduling.models.decided import not_before
from scheduling.models.own_timing import Former, has_own_timing, timing_problem
from scheduling.models.plan import FIRST_INSTANT, INSTANTS, PLAN, PLANNED, PlanState
from scheduling.policies.after import PredecessorUnusable, check_predecessor
from scheduling.processes import left_out
from scheduling.processes.database import is_away
from scheduling.processes.unusable_values import at_column

log = get_logger(__name__)

MOMENT = 0.1
"""A wait of fewer seconds does not matter."""


def record_former(
    sender: Any, instance: Scheduler, raw: bool = False, update_fields: Any = None, **_kwargs: Any
) -> None:
    """`pre_save` receiver that records what the old plan has missed, or what a pause has left out.

    If the plan does not change, the receiver does nothing. (`save` writes `next_run_at` only if the plan changes.)
    """
    if raw or instance._state.adding or (update_fields is not None and "next_run_at" not in update_fields):
        return
    # The same instant as in the new plan: one that falls due in between would be counted twice.
    now = instance.changed_at or clock.now()
    _record_pause(instance, now)
    _record_missed(instance, now)


def _record_pause(instance: Scheduler, now: datetime) -> None:
    with transaction.atomic():
        row = Scheduler.objects.filter(pk=instance.pk, paused_at__isnull=False).select_for_update().first()
        if row is None:
            return
        if record_left_out(row, instance, now):
            instance.next_run_at = instance.next_nominal_at = None
            instance.plan(now)
    if not instance.status:
        instance.pause_recorded_to = now


def _record_missed(instance: Scheduler, now: datetime) -> None:
    if (first := first_of(instance)) is None or first > now:
        return
    with transaction.atomic():
        row = Scheduler.objects.select_for_update().get(pk=instance.pk)
        if first_of(row) != first or not row.planned_status:
            return  # a producer has claimed the occurrence, or the old plan was not active
        settle_former(row, now, times_change=instance.times_changed(row), edited=instance)
        instance.next_run_at, instance.next_nominal_at = row.next_run_at, row.next_nominal_at
        if instance.next_run_at is None:
            instance.plan(now)


def set_aside(scheduler_id: int, error: Exception, now: datetime) -> None:
    """Stop planning a schedule that cannot be planned or claimed, and log the error once.

    An SQL update copies the columns in `PLAN` to their `planned_` copies, because Python may not be able to read the
    values. When one of these columns changes again, the sweep plans the schedule again. If the database refuses the
    update, the schedule is left out for a minute.
    """
    # The text of these errors says what is wrong with the plan.
    expected = isinstance(error, CronError | ZoneError | PredecessorUnusable)
    text = clean(str(error) if expected else at_column(Scheduler, scheduler_id, error), 500)
    rows = Scheduler.objects.filter(pk=scheduler_id)
    known = rows.filter(plan_error=text).exists()
    try:
        with transaction.atomic():
            copies = {f"planned_{name}": F(name) for name in PLAN}
            rows.update(next_run_at=None, next_nominal_at=None, plan_error=text, **copies)
    except Exception as refused:
        if is_away(refused):
            raise
        left_out.schedules.add(scheduler_id, refused, now)
        return
    if not known:
        log.error("Schedule cannot be planned and is set aside: %s", text, extra={"scheduler_id": scheduler_id})


def later(now: datetime, begun: float) -> datetime:
    """The instant at which to plan after a wait, for example for a lock.

    With the instant before the wait, an occurrence that has fallen due since would count as a future one. If plain SQL
    has changed the times, it would be dropped, and would not be on record.

    Args:
        begun: when it was `now`, on the monotonic clock.
    """
    waited = time.monotonic() - begun
    return now + timedelta(seconds=waited) if waited > MOMENT else now


@in_english()
def plan_anew(ids: Iterable[int], now: datetime) -> int:
    """Plan schedules again after plain SQL edited them. A schedule that cannot be planned is set aside.

    Returns:
        How many schedules were planned.

    Raises:
        django.db.DatabaseError: the database is away.
    """
    count = 0
    for pk in ids:
        former = Scheduler.objects.filter(pk=pk).values_list("revision", flat=True).first()
        note_found(pk, now)
        try:
            with transaction.atomic():
                plan_row(Scheduler.objects.get(pk=pk), now, former)
            count += 1
        except Scheduler.DoesNotExist:
            continue
        except Exception as error:
            if is_away(error):
                raise
            _record_due(pk, now)
            set_aside(pk, error, now)
    return count


def _record_due(pk: int, now: datetime) -> None:
    """Put on record what was due by the former times of a schedule that is about to be set aside.

    When it is planned again, nothing knows these times any more.
    """
    try:
        with transaction.atomic():
            row = Scheduler.objects.get(pk=pk)
            now = not_before(row, now)
            if row.paused_at is not None:
                record_left_out(row, row, now)
                return
            settle_former(row, now, times_change=True, edited=row)
            if row.planned_status and (due := first_of(row)) is not None and FIRST_INSTANT <= due <= now:
                record_dropped(row, due, now)
    except Exception as error:
        if is_away(error):
            raise
        log.debug("What was due cannot be recorded: %s", error, extra={"scheduler_id": pk})


def plan_row(row: Scheduler, now: datetime, former_revision: int | None = None) -> None:
    """Plan one schedule and write the columns of the plan.

    Args:
        now: it may be behind (`models.decided`).
        former_revision: the revision before plain SQL has changed the schedule. What was due by it names it.

    Raises:
        ValueError: plain SQL has removed the times of the schedule, has set its date before FIRST_YEAR, or has stored a
            value that Python reads differently.
        PredecessorUnusable: plain SQL has made a circle of schedules, or has removed the one that it waits for.
        CronError, ZoneError: see `first_run`. CronError also if a rule of its own cannot be used (`timing_problem`).
    """
    _check(row)
    now = not_before(row, now)
    present, row.revision = row.revision, former_revision or row.revision
    _record_former(row, now)
    row.revision = present
    _plan_after_pause(row, now)
    if row.next_run_at is not None and row.next_run_at < FIRST_INSTANT:
        raise ValueError(f"Its date and time lie before {FIRST_INSTANT.year}.")
    rows = Scheduler.objects.filter(pk=row.pk)
    for name in INSTANTS:
        if getattr(row, name) is None:
            # MariaDB and MySQL read 0000-00-00 as NULL.
            rows.filter(**{f"{name}__lt": FIRST_INSTANT}).update(**{name: None})
    # SQLite compares the text of instants, and plain SQL may have written another form of it (`T` instead of a space).
    # So the instants are written, too; otherwise they would differ from their copies for ever.
    names = (*PLANNED, *INSTANTS) if connection.vendor == "sqlite" else PLANNED
    rows.update(**{name: getattr(row, name) for name in names})
    if rows.filter(plan_state=PlanState.STALE).exists():
        raise ValueError("A value of its plan is not stored as it is read.")


def _record_former(row: Scheduler, now: datetime) -> None:
    """Record what the former plan has left, except for an occurrence that a producer still finds in the row."""
    times_change = row.times_changed()
    if row.paused_at is not None:
        if record_left_out(row, row, now):
            row.next_run_at = row.next_nominal_at = None
    elif times_change or has_own_timing(Former(row)):
        settle_former(row, now, times_change=times_change, edited=row)
    due = first_of(row)
    if due is None or (FIRST_INSTANT <= due <= now and (not times_change or _fires_at(row, due))):
        return
    if row.planned_status and FIRST_INSTANT <= due <= now:
        record_dropped(row, due, now)
    # The new plan has no occurrence at this instant, so the instant is dropped. It is unknown whether the edit was made
    # before or after this instant. An instant in the future is planned anew.
    row.next_run_at = row.next_nominal_at = None


def _check(row: Scheduler) -> None:
    if row.status:
        check_predecessor(row)
        if not row.schedule and row.date_time is None:
            raise ValueError("It has neither a cron expression nor a date and time.")
    if problem := timing_problem(row):
        raise CronError(problem)


def _plan_after_pause(row: Scheduler, now: datetime) -> None:
    """Plan the row, and note a pause that plain SQL has begun or ended."""
    paused = row.paused_at is not None
    due = row.next_run_at
    row.plan(now)
    if row.status:
        if row.pause_reason:
            Scheduler.objects.filter(pk=row.pk).update(pause_reason="")  # as `save` does
    elif paused:
        row.pause_recorded_to = now
    elif row.paused_at is not None and due is not None:
        # It is unknown when plain SQL paused it. From a due occurrence on, no occurrence may be lost.
        row.paused_at = min(due, now)


def _fires_at(row: Scheduler, instant: datetime) -> bool:
    if row.date_time is not None:
        return row.date_time == instant
    return is_due(parse(row.schedule), row.zone_name, instant)
