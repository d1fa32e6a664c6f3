"""Schedules with a calendar that excludes the early afternoon, and their claims."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from scheduling.execution.claim import claim_due
from scheduling.execution.planning import plan_anew
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.changed_calendars import sweep_calendars
from tests.factories import CalendarFactory, SchedulerFactory
from tests.support import NOON

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LUNCH = "2026-03-10 14:00-16:30 lunch"


def hourly(entries: str = LUNCH, **columns: Any) -> Scheduler:
    """An hourly schedule with a calendar, planned at noon."""
    named = CalendarFactory(name="Kitchen", entries=entries)
    return planned(SchedulerFactory(schedule="0 * * * *", timezone="UTC", calendar=named, **columns))


def planned(row: Scheduler) -> Scheduler:
    sweep_calendars(NOON)
    Scheduler.objects.filter(pk=row.pk).update(planned_at=NOON)
    plan_anew([row.pk], NOON)
    row.refresh_from_db()
    return row


def claims(start: datetime, hours: float) -> list[tuple[str, str, str]]:
    """Claim every ten minutes. Each new execution as (key, state, reason)."""
    known = set(SchedulerExecution.objects.values_list("pk", flat=True))
    for number in range(int(hours * 6) + 1):
        claim_due(start + number * 10 * MINUTE, embedded=True)
    rows = SchedulerExecution.objects.exclude(pk__in=known).order_by("pk")
    return [(row.execution_key.removeprefix("cron-2026-3-10-"), row.state, row.reason) for row in rows]
