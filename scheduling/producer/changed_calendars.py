"""Checks calendars that plain SQL has changed, and plans the schedules anew that name a changed calendar.

A claim reads the calendars of its schedules each time, so nothing starts at an excluded instant in the meantime. What
has fallen due by the former entries is put on record by the former entries.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.db.models import F

from scheduling.core.text import clean
from scheduling.core.words import in_english
from scheduling.execution.planning import later, plan_anew
from scheduling.logs import get_logger
from scheduling.models import Calendar, Scheduler
from scheduling.models.calendar import ERROR_LENGTH, CalendarState
from scheduling.models.exclusions import calendar, read_once
from scheduling.models.prepared import any_of
from scheduling.processes import left_out
from scheduling.processes.database import is_away

log = get_logger(__name__)

CALENDARS_PER_SWEEP = 20
SCHEDULES_PER_BATCH = 200
PLAN_SECONDS = 1.0
"""The longest time for which one sweep plans the schedules of changed calendars."""

_failed: dict[int, float] = {}
"""The calendars that this process leaves out, and until when on the monotonic clock."""


_CHANGED = Calendar.objects.filter(state__gt=CalendarState.CURRENT.value)
ANY_CHANGED = any_of(lambda _now: _CHANGED.order_by("state", "pk"))


def sweep_calendars(now: datetime, seconds: float = PLAN_SECONDS, batch: int = SCHEDULES_PER_BATCH) -> int:
    """Check changed calendars, and plan the schedules that name them. Returns how many schedules were planned.

    Args:
        batch: how many schedules one transaction plans.

    Raises:
        django.db.DatabaseError: the database is away.
    """
    if not ANY_CHANGED.rows() or not (found := _waiting()):
        return 0
    for pk in [pk for pk, state in found if state == CalendarState.CHANGED]:
        _guarded(pk, lambda pk: _check(pk, now))
    begun, planned = time.monotonic(), 0
    until = begun + seconds

    def plan(pk: int) -> None:
        nonlocal planned
        while (count := _plan_batch(pk, now, begun, batch, until)) is not None:
            planned += count
            if time.monotonic() > until:
                return

    for pk, _state in found:
        _guarded(pk, plan)
    if planned:
        log.info("Schedules planned whose calendar was changed: %s", planned)
    return planned


def _waiting() -> list[tuple[int, int]]:
    """The calendars that are not current, and their states, without those that have just failed."""
    here = time.monotonic()
    for pk in [pk for pk, until in _failed.items() if until <= here]:
        del _failed[pk]
    rows = _CHANGED.order_by("state", "id")
    if _failed:
        rows = rows.exclude(pk__in=list(_failed))
    return list(rows.values_list("pk", "state")[:CALENDARS_PER_SWEEP])


def _guarded(pk: int, handle: Callable[[int], None]) -> None:
    """Call `handle`. If it fails, the calendar is left out for a minute, and the others go on."""
    try:
        handle(pk)
    except Exception as error:
        if is_away(error):
            raise
        _failed[pk] = time.monotonic() + left_out.LEFT_OUT_SECONDS
        log.exception("A calendar cannot be swept", extra={"calendar": pk})


@in_english()
def _check(pk: int, now: datetime) -> None:
    """Give a calendar that plain SQL has changed its next version, and note whether it can be used."""
    with transaction.atomic():
        rows = Calendar.objects.filter(pk=pk, state=CalendarState.CHANGED.value)
        if not rows.select_for_update(skip_locked=True).values_list("pk"):
            return  # another producer checks it
        last_date = None
        try:
            with transaction.atomic():
                found = calendar(pk)
            why_not = found.why_not
            last_date = found.exclusions.last_date if found.exclusions is not None else None
        except Exception as error:
            if is_away(error):
                raise
            why_not = f"it cannot be read: {error}"
        rows.update(
            version=F("version") + 1, read_entries=F("entries"), read_timezone=F("timezone"), updated_at=now,
            error=clean(why_not, ERROR_LENGTH), last_date=last_date,
        )  # fmt: skip
    if why_not:
        log.error("A calendar cannot be used. Schedules that name it do not run: %s", why_not, extra={"calendar": pk})


def _plan_batch(pk: int, now: datetime, begun: float, most: int, until: float) -> int | None:
    """Plan some of the schedules that are planned by an earlier version of the calendar. None: none is left.

    Args:
        begun: when it was `now`, on the monotonic clock.
        until: no schedule but the first is begun later, on the monotonic clock. The rest stays for the next sweep: the
            thread of this sweep also claims what is due.
    """
    version = Calendar.objects.filter(pk=pk).values_list("version", flat=True).first()
    if version is None:
        return None
    stale = Scheduler.objects.filter(calendar=pk, planned_calendar_version__lt=version)
    with transaction.atomic():
        # A claim may have locked a row. It stays for the next sweep.
        locked = left_out.schedules.without(stale).select_for_update(skip_locked=True)
        ids = list(locked.values_list("pk", flat=True)[:most])
        if ids:
            done: list[int] = []
            with read_once():
                for schedule in ids:
                    plan_anew([schedule], later(now, begun))
                    done.append(schedule)
                    if time.monotonic() > until:
                        break
            # A schedule that was set aside is not tried again before the calendar or the schedule changes.
            Scheduler.objects.filter(pk__in=done).update(planned_calendar_version=version)
            return len(done)
    if not stale.exists():
        _finish(pk, version)
    return None


def _finish(pk: int, version: int) -> None:
    """Note that all schedules are planned by this version."""
    Calendar.objects.filter(pk=pk, version=version).update(
        planned_version=version, planned_entries=F("read_entries"), planned_timezone=F("read_timezone")
    )
