"""A spent one-time schedule is removed after its age. Its executions stay, without a schedule."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from django.utils import timezone as clock

from scheduling.core.retention import Rule
from scheduling.execution.claim import claim_due
from scheduling.execution.retention import prune
from scheduling.models import Scheduler, SchedulerExecution
from tests.execution.retention import newer
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import lax_sql

pytestmark = pytest.mark.django_db

OLD = timedelta(days=20)


@pytest.fixture(autouse=True)
def ten_days() -> object:
    """Remove spent one-time schedules after ten days."""
    with override_settings(CRON_RETENTION_ONE_TIME_DAYS="10"):
        yield


def spent(age: timedelta = OLD, **columns: object) -> Scheduler:
    """Return a one-time schedule whose date has passed, and whose run was claimed."""
    row = SchedulerFactory(once=True)
    then = clock.now() - age
    values = {"date_time": then, "planned_date_time": then, "next_run_at": None, "status": False}
    values |= {"planned_status": False, **columns}
    Scheduler.objects.filter(pk=row.pk).update(**values)
    row.refresh_from_db()
    return row


def there(*rows: Scheduler) -> list[bool]:
    return [Scheduler.objects.filter(pk=row.pk).exists() for row in rows]


def test_a_spent_schedule_is_removed_and_its_executions_stay() -> None:
    old, young, active = spent(), spent(timedelta(days=9)), spent(status=True, planned_status=True)
    runs = [newer(row) for row in (old, young, active)]
    assert prune(clock.now(), dry_run=True).rules == {Rule.ONE_TIME: 2}
    assert there(old, young, active) == [True, True, True]
    assert prune(clock.now()).rules == {Rule.ONE_TIME: 2}
    assert there(old, young, active) == [False, True, False]
    found = SchedulerExecution.objects.filter(pk__in=[run.pk for run in runs]).order_by("pk")
    assert list(found.values_list("scheduler", flat=True)) == [None, young.pk, None]


@pytest.mark.parametrize("state", ["claimed", "queued", "running", "retrying", "failed", "odd"])
def test_a_schedule_with_an_unfinished_execution_is_kept(state: str) -> None:
    row = spent()
    ManualExecutionFactory(scheduler=row, state=state)
    newer(row)
    assert prune(clock.now()).rules == {}
    assert there(row) == [True]


def test_a_schedule_is_kept_while_its_occurrence_is_due_or_its_plan_is_open() -> None:
    waits = due(spent(), clock.now() - OLD)
    stale = spent(planned_status=True)  # plain SQL has paused it, and no producer has seen that yet
    aside = spent(status=True, planned_status=True, plan_error="It cannot be planned.")
    cron = SchedulerFactory(rare=True, off=True)
    assert prune(clock.now()).rules == {}
    assert there(waits, stale, aside, cron) == [True] * 4
    assert claim_due(clock.now(), embedded=True).skipped == 1  # no producer claimed it in time
    waits.refresh_from_db()


def test_nothing_is_removed_until_the_age_is_set() -> None:
    row = spent()
    with override_settings(CRON_RETENTION_ONE_TIME_DAYS=None):
        assert prune(clock.now()).rules == {}
    assert there(row) == [True]


def test_an_age_within_the_catch_up_window_is_not_applied() -> None:
    row = spent()
    with override_settings(CRON_CATCH_UP_SECONDS=30 * 86_400):
        assert prune(clock.now()).rules == {}
    assert there(row) == [True]


@pytest.mark.parametrize("date", ["2020-13-45 00:00:00", "0000-00-00 00:00:00", "-infinity", "", "0001-01-01 00:00:00"])
def test_a_date_that_sql_wrote_and_no_program_can_read_is_kept(date: str) -> None:
    row, other = spent(), spent()
    try:
        with lax_sql(), transaction.atomic(), connection.cursor() as cursor:
            sql = "UPDATE scheduling_scheduler SET date_time = %s, planned_date_time = %s WHERE id = %s"
            cursor.execute(sql, [date, date, row.pk])
    except DatabaseError as error:
        pytest.skip(f"refused by {connection.vendor}: {error}")
    assert prune(clock.now()).rules == {Rule.ONE_TIME: 1}
    assert there(row, other) == [True, False]


def test_a_schedule_that_gets_a_new_date_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduling.execution.retention import one_time

    row = spent()
    before = clock.now() - timedelta(days=10)
    assert list(one_time.spent(before).values_list("pk", flat=True)) == [row.pk]
    later: datetime = clock.now() + timedelta(days=1)
    Scheduler.objects.filter(pk=row.pk).update(date_time=later, planned_date_time=later, next_run_at=later)
    assert one_time.remove_spent([row.pk], before, dry_run=False) == 0
    assert there(row) == [True]
