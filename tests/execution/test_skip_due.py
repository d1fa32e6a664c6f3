"""What fell due while a database was held is skipped by the times that it was due by."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.execution.claim import claim_due
from scheduling.execution.skip_due import skip_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import plan_stale
from tests.factories import SchedulerFactory
from tests.support import NOON, Clock

pytestmark = [pytest.mark.django_db, pytest.mark.database]

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def confirm(at: Clock, minutes: float) -> None:
    """Skip what is due, and let a producer go on."""
    now = at(NOON + minutes * MINUTE)
    skip_due(now, "the database was restored", now)
    plan_stale(now)
    claim_due(now, embedded=True)


def counted() -> int:
    rows = SchedulerExecution.objects.all()
    assert {row.state for row in rows} == {"skipped"}
    return sum(max(row.missed, 1) for row in rows)


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [("* * * * *", "*/20 * * * *", 10), ("* * * * *", "0 * * * *", 10), ("*/5 * * * *", "* * * * *", 2)],
)
def test_plain_sql_has_changed_the_times_meanwhile(at: Clock, before: str, after: str, due: int) -> None:
    at(NOON + MINUTE / 2)
    SchedulerFactory(schedule=before, timezone="UTC")
    Scheduler.objects.update(schedule=after)
    confirm(at, 10.6)
    assert counted() == due


def test_plain_sql_has_ended_a_pause_meanwhile(at: Clock) -> None:
    at(NOON + MINUTE / 2)
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC")
    at(NOON + MINUTE + SECOND)  # 12:01 is due, and no producer has claimed it
    row.status = False
    row.save()
    Scheduler.objects.update(status=True)
    confirm(at, 10.6)
    assert counted() == 10


def test_plain_sql_has_set_rules_meanwhile(at: Clock) -> None:
    at(NOON + MINUTE / 2)
    SchedulerFactory(schedule="* * * * *", timezone="UTC")
    Scheduler.objects.update(spread_seconds=600, active_from=NOON + 4 * MINUTE)
    confirm(at, 5.6)
    Scheduler.objects.update(spread_seconds=None, active_from=None)
    plan_stale(NOON + 5.6 * MINUTE)
    claim_due(at(NOON + 6 * MINUTE), embedded=True)
    SchedulerExecution.objects.get(execution_key="cron-2026-3-10-12-6", state="queued").delete()
    assert counted() == 5


def test_a_date_has_replaced_an_expression_and_has_passed_too(at: Clock) -> None:
    at(NOON + MINUTE / 2)
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC")
    at(NOON + MINUTE + SECOND)
    row.schedule, row.date_time = "", NOON + 3 * MINUTE
    row.save()
    confirm(at, 4)
    found = SchedulerExecution.objects.order_by("scheduled_at").values_list("execution_key", "state")
    assert list(found) == [("cron-2026-3-10-12-1", "skipped"), ("date-2026-3-10-12-3", "skipped")]
