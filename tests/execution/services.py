"""Services, their runs, and the ends of their attempts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone as clock

from scheduling.core.outcome import Outcome
from scheduling.core.retry import RetryPolicy
from scheduling.execution import transitions
from scheduling.execution.claim import claim_due
from scheduling.execution.settle import Settled, settle_attempt
from scheduling.execution.transitions import Ended
from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import SchedulerFactory, due
from tests.support import NOON

LEASE = timedelta(seconds=15)
POLICY = RetryPolicy(max_retries=1, delay_ms=30_000, multiplier=2.0)


def service(**columns: Any) -> Scheduler:
    return SchedulerFactory(**{"schedule": "* * * * *", "stay_alive": True, "params": {}, **columns})


def first_run(row: Scheduler) -> SchedulerExecution:
    due(row, NOON)
    (execution,) = claim_due(NOON, embedded=True).claimed
    return execution


def attempt(
    run: SchedulerExecution,
    outcome: Outcome,
    lasted: timedelta = timedelta(minutes=1),
    now: datetime | None = None,
    *,
    is_service: bool = True,
) -> Settled:
    """Start the next attempt, and end it with this outcome after this time."""
    run.refresh_from_db()
    end = now or clock.now()
    assert transitions.start(run.pk, run.attempt + 1, run.execution_key, "one", end - lasted, end + LEASE)
    ended = Ended(run.pk, run.attempt + 1, end - lasted, "one", 4711)
    with transaction.atomic():
        result = settle_attempt(ended, outcome, POLICY, end, embedded=True, service=is_service)
    run.refresh_from_db()
    return result
