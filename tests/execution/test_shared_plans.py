"""Schedules share a plan only if their times, their rules and their calendars are the same."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduling.execution.claim import claim_due
from scheduling.models import Calendar, Scheduler, SchedulerExecution
from tests.factories import CalendarFactory, SchedulerFactory

pytestmark = [pytest.mark.django_db, pytest.mark.database]

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


def due(**rules: Any) -> Scheduler:
    row = SchedulerFactory(schedule="0 12 * * *", timezone="UTC", **rules)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=NOON, next_nominal_at=None, planned_at=None)
    return row


def test_each_schedule_is_planned_by_its_own_calendar_and_rules() -> None:
    open_day = CalendarFactory(entries="2026-03-11", timezone="UTC")
    closed = CalendarFactory(entries="2026-03-10", timezone="UTC")
    Calendar.objects.update(planned_version=1)
    states = {
        due(calendar=open_day).pk: "queued",
        due(calendar=closed).pk: "skipped",
        due(calendar=open_day, missed_runs="all").pk: "queued",
        due(calendar=open_day).pk: "queued",
        due(calendar=closed).pk: "skipped",
    }
    claim_due(NOON, embedded=True)
    assert dict(SchedulerExecution.objects.values_list("scheduler", "state")) == states
