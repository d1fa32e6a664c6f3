"""A pause that begins while a claim has the schedule: what was claimed stays, and what follows is on record."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import plan_stale
from tests.factories import SchedulerFactory, due
from tests.support import NOON, Clock

pytestmark = [pytest.mark.django_db, pytest.mark.database]


@pytest.mark.parametrize("by_sql", [False, True])
@pytest.mark.parametrize("claimed_at", [10, 30])
def test_what_was_claimed_while_the_pause_began_hides_nothing_that_follows(
    at: Clock, by_sql: bool, claimed_at: int
) -> None:
    """The process that paused the schedule read the clock before 12:10. A claim had the row, and was faster.

    At 12:30, the claim has put 12:10 and 12:20 on record as missed ones.
    """
    at(NOON - timedelta(days=1))
    row: Scheduler = SchedulerFactory(schedule="*/10 * * * *")
    due(row, NOON + timedelta(minutes=10))
    claim_due(NOON + timedelta(minutes=claimed_at), embedded=True)
    made = SchedulerExecution.objects.count()
    Scheduler.objects.update(status=False, planned_status=False, next_run_at=None, paused_at=NOON)
    row.refresh_from_db()
    at(NOON + timedelta(minutes=65))
    if by_sql:
        Scheduler.objects.update(status=True)
        plan_stale(clock.now())
    else:
        row.status = True
        row.save(update_fields=["status"])
    assert SchedulerExecution.objects.count() == made + 1
    counted = sum(max(one.missed, 1) for one in SchedulerExecution.objects.all())
    assert counted == 6  # 12:10 to 13:00, each once
