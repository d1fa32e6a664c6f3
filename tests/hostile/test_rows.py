"""Plain SQL writes invalid values into a row. All valid rows still run, and a refused row has a reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.row_writer import RowWriter
from scheduling.core.lifecycle import State
from scheduling.execution.claim import claim_due, next_due
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import sweep
from tests.factories import ManualExecutionFactory, SchedulerFactory, due

pytestmark = pytest.mark.django_db(transaction=True)

BIG = "1" * 5000
DEEP = "[" * 900 + "]" * 900

SCHEDULER_VALUES = [
    ("params", "null"),
    ("params", f'{{"x": {BIG}}}'),
    ("params", f'{{"x": {DEEP}}}'),
    ("params", "[1]"),
    ("next_run_at", "0001-01-01 00:00:00"),
    ("next_run_at", "0000-00-00 00:00:00"),
    ("next_run_at", "2020-13-45 00:00:00"),
    ("next_run_at", "-infinity"),
    ("planned_date_time", "2020-13-45 00:00:00"),
    ("date_time", "0001-01-01 00:00:00"),
    ("status", "-1"),
    ("timezone", "Nowhere/Atlantis"),
    ("schedule", "61 * * * *"),
]

EXECUTION_VALUES = [
    ("type", "nonsense"),
    ("type", ""),
    ("params", f'{{"x": {BIG}}}'),
    ("params", f'{{"x": {DEEP}}}'),
    ("params", "null"),
    ("wake_at", "0000-00-00 00:00:00"),
    ("wake_at", "0001-01-01 00:00:00"),
    ("wake_at", "-infinity"),
    ("scheduled_at", "2020-13-45 00:00:00"),
    ("scheduled_at", "infinity"),
    ("attempt", "many"),
    ("target_id", "x"),
    ("retry_base", "99"),
    ("execution_key", ""),
]


@pytest.fixture(autouse=True)
def lax_sql(transactional_db: None) -> None:
    """Make MariaDB and MySQL accept zero dates. An operator's SQL client may have the same setting."""
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = ''")


def spoil(row: Any, column: str, value: str) -> None:
    """Write a value into a column of a row by plain SQL. If the database refuses the value, skip the test."""
    table = row._meta.db_table
    quote = connection.ops.quote_name
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE {quote(table)} SET {quote(column)} = %s WHERE id = %s", [value, row.pk])
    except DatabaseError as error:
        pytest.skip(f"refused by {connection.vendor}: {error}")


def short(values: list[tuple[str, str]]) -> list[str]:
    return [f"{column}={value[:24]}" for column, value in values]


@pytest.mark.parametrize(("column", "value"), SCHEDULER_VALUES, ids=short(SCHEDULER_VALUES))
def test_a_spoilt_schedule_stops_no_other(column: str, value: str) -> None:
    now = clock.now()
    spoilt, healthy = (due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=5)) for _ in range(2))
    spoil(spoilt, column, value)
    for _turn in range(2):
        next_due()
        claim_due(now, embedded=True)
        sweep(DatabaseBroker(), now)
    assert SchedulerExecution.objects.filter(scheduler=healthy.pk, state=State.QUEUED.value).count() == 1
    healthy.refresh_from_db()
    assert healthy.next_run_at is not None
    assert healthy.next_run_at > now


@pytest.mark.parametrize("state", ["queued", "retrying", "running"])
@pytest.mark.parametrize(("column", "value"), EXECUTION_VALUES, ids=short(EXECUTION_VALUES))
def test_a_spoilt_execution_stops_no_other(column: str, value: str, state: str) -> None:
    now = clock.now()
    past = now - timedelta(minutes=5)
    spoilt = ManualExecutionFactory(state=state, wake_at=past)
    healthy = ManualExecutionFactory(wake_at=past)
    spoil(spoilt, column, value)
    broker, configs = DatabaseBroker(), RunConfigs()
    writer = RowWriter(broker, "main", 60, configs, Answers(broker, "main"), Rescue(broker, "main"))
    sweep(broker, now, configs)
    started: list[int | None] = []
    for _turn in range(3):
        _settled, _deliveries, arrivals = writer.write([], 5, now)
        started += [arrival.delivery.message.execution_id for arrival in arrivals if arrival.started]
    assert healthy.pk in started
    ((state_now, reason),) = SchedulerExecution.objects.filter(pk=spoilt.pk).values_list("state", "error_message")
    # The row failed with a reason, or started like any other row, or was left alone because its time is unreadable.
    assert state_now in {"failed", "running", "retrying", "queued"}
    assert reason or state_now != "failed"


def test_a_schedule_that_is_set_aside_says_why() -> None:
    now = clock.now()
    row = due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=5))
    spoil(row, "params", "null")
    assert claim_due(now, embedded=True).broken == 1
    ((reason, following),) = Scheduler.objects.filter(pk=row.pk).values_list("plan_error", "next_run_at")
    assert reason
    assert following is None
