"""Schedules that run alone, and their occurrences."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import SchedulerFactory, due
from tests.support import NOON

HOUR = timedelta(hours=1)
OPEN = sorted(state.value for state in OPEN_STATES)


def alone(**columns: Any) -> Scheduler:
    """Make a schedule that leaves out a run while the run before it is not over."""
    return SchedulerFactory(**{"schedule": "0 * * * *", "params": {}, "overlap": "skip", **columns})


def occurrence(row: Scheduler, number: int) -> list[SchedulerExecution]:
    """Claim the occurrence `number` hours after noon, at this instant. Returns the new executions."""
    now = NOON + number * HOUR
    due(row, now)
    return claim_due(now, embedded=True).claimed


def put(row: SchedulerExecution, state: str) -> None:
    SchedulerExecution.objects.filter(pk=row.pk).update(state=state)


def skips(row: Scheduler) -> list[tuple[int, str]]:
    rows = SchedulerExecution.objects.filter(scheduler=row, state="skipped").order_by("pk")
    return list(rows.values_list("missed", "reason"))
