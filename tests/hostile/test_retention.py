"""Retention meets values that plain SQL wrote. It never stops, and it never removes what waits or runs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from django.utils import timezone as clock

from scheduling.core.retention import Rule
from scheduling.execution.retention import prune
from scheduling.models import Output, Scheduler, SchedulerExecution
from tests.execution.retention import keys, left, make_executions
from tests.factories import OutputFactory, SchedulerFactory
from tests.hostile import fuzz
from tests.hostile.standing_rows import all_columns, spoil, stand
from tests.hostile.values import empty, lenient

pytestmark = pytest.mark.django_db(transaction=True)

STRICT = {
    "CRON_RETENTION_DAYS": 1, "CRON_RETENTION_FAILED_DAYS": 1, "CRON_RETENTION_OUTPUT_DAYS": 1,
    "CRON_RETENTION_KEEP": 1, "CRON_RETENTION_ONE_TIME_DAYS": 1,
}  # fmt: skip
WAITING = ("queued", "claimed", "retrying", "running")

TIMES = [
    "2020-13-45 00:00:00", "0000-00-00 00:00:00", "-infinity", "infinity", "0001-01-01 00:00:00", "", "x",
    "2020-03-1ZT12:00:60Z", "9999-12-31 23:59:59",
]  # fmt: skip


def write(table: str, column: str, value: str, pk: int) -> None:
    """Write a value by SQL, or skip the test if the database refuses it."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET {column} = %s WHERE id = %s", [value, pk])
    except DatabaseError as error:
        pytest.skip(f"refused by {connection.vendor}: {error}")


@pytest.mark.parametrize("column", ["finished_at", "executed_at", "scheduled_at"])
@pytest.mark.parametrize("value", TIMES)
def test_a_time_that_no_program_can_read_stops_no_other_row(column: str, value: str) -> None:
    rows = make_executions("succeeded", 5)
    with lenient():
        write("scheduling_schedulerexecution", column, value, rows[2].pk)
        assert prune(clock.now(), batch=3).executions >= 4
        # A time of the year 1 can be read, and is old. Two databases read a first of March.
        assert left(rows) in ([rows[2].pk], [])
        assert left(rows) or value.startswith(("0001", "2020-03"))


@pytest.mark.parametrize("value", ["nonsense", "SUCCEEDED", "", "Succeeded ", "running"])
def test_a_state_that_no_program_wrote_is_kept(value: str) -> None:
    rows = make_executions("succeeded", 2)
    write("scheduling_schedulerexecution", "state", value, rows[0].pk)
    with override_settings(**STRICT):
        prune(clock.now())
    # MariaDB compares texts without case and without spaces at the end, but retention compares in Python.
    assert rows[0].pk in left(rows)


@pytest.mark.long
def test_any_values_of_any_column() -> None:
    pick, stored = fuzz.generator("retention"), 0
    source, amount = all_columns(pick), fuzz.amount(fuzz.VALUES // 4, 100)
    later = timedelta(days=60)
    while stored < amount:
        empty()
        now = clock.now()
        rows = stand(now)
        then = now - timedelta(days=90)
        old = make_executions("succeeded", 3)
        Scheduler.objects.filter(date_time__isnull=False).update(date_time=then)
        states = dict(SchedulerExecution.objects.values_list("pk", "state"))
        spoiled = spoil(pick, source, rows)
        said = f"seed {fuzz.choose_seed()}: " + "; ".join(map(str, spoiled))
        try:
            with override_settings(**STRICT):
                prune(now + later, dry_run=True)
                done = prune(now + later)
        except Exception as error:
            raise AssertionError(said) from error
        assert left(old) == [], said
        assert done.complete
        changed = {value.pk for value in spoiled if value.column in ("state", "id")}
        there = set(SchedulerExecution.objects.values_list("pk", flat=True))
        lost = {pk for pk, state in states.items() if state in WAITING} - there - changed
        assert lost == set(), said
        stored += len(spoiled)
    empty()


def test_a_key_of_a_schedule_that_does_not_exist_is_no_obstacle() -> None:
    rows = make_executions("succeeded", 2)
    with lenient():
        write("scheduling_schedulerexecution", "scheduler_id", "999999", rows[0].pk)
        with override_settings(CRON_RETENTION_KEEP="1"):
            assert prune(clock.now()).rules == {Rule.SUCCESS: 2}
    assert left(rows) == []


def test_an_output_of_a_text_is_no_obstacle() -> None:
    rows = make_executions("succeeded", 2)
    first, second = (OutputFactory(execution=row) for row in rows)
    with lenient():
        write("scheduling_output", "execution_id", "a text", first.pk)
        with override_settings(CRON_RETENTION_OUTPUT_DAYS="1"):
            assert prune(clock.now() + timedelta(days=2)).complete
    assert not Output.objects.filter(pk=second.pk).exists()


@pytest.mark.long
def test_many_schedules_with_values_of_their_own_are_read_in_parts() -> None:
    made = SchedulerFactory(rare=True, keep_success_days=5)
    rows = make_executions("succeeded", 1, timedelta(days=10), made)
    copies = [Scheduler(worker=made.worker, schedule="0 0 1 1 *", keep_count=1) for _ in range(1100)]
    Scheduler.objects.bulk_create(copies, batch_size=200)
    last = SchedulerFactory(rare=True, keep_success_days=5)
    rows += make_executions("succeeded", 1, timedelta(days=10), last)
    assert prune(clock.now()).rules == {Rule.SUCCESS: 2}
    assert left(rows) != keys(rows)
