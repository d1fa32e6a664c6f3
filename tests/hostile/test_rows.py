"""Plain SQL writes an invalid value into a row. The other rows still run, and a refused row has a reason."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.row_writer import RowWriter
from scheduling.core.lifecycle import State
from scheduling.execution.claim import claim_due, next_due
from scheduling.handlers.retry_policy import inherited_policy, retry_policy
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Replay, Scheduler, SchedulerExecution
from scheduling.monitoring.findings import bad_rows
from scheduling.monitoring.findings.present import Present
from scheduling.processes.database import is_away
from scheduling.producer.sweeps import sweep
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.hostile.values import lenient, write
from tests.support import lax_sql

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
    ("next_run_at", "2020-03-1ZT12:00:60Z"),
    ("planned_date_time", "2020-13-45 00:00:00"),
    ("date_time", "0001-01-01 00:00:00"),
    ("status", "-1"),
    ("timezone", "Nowhere/Atlantis"),
    ("schedule", "61 * * * *"),
    ("retry_delay_ms", "-"),
    ("time_limit", "soon"),
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
    ("attempt", "0.5"),
    ("attempt", "-1"),
    ("target_id", "x"),
    ("retry_base", "99"),
    ("execution_key", ""),
]


@pytest.fixture(autouse=True)
def accept_invalid_dates(transactional_db: None) -> Iterator[None]:
    """Make MariaDB and MySQL accept invalid dates during a test."""
    with lax_sql():
        yield


def write_by_sql(row: Any, column: str, value: str) -> None:
    """Write a value into a column with plain SQL. If the database refuses the value, skip the test."""
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
def test_an_invalid_schedule_does_not_stop_others(column: str, value: str) -> None:
    now = clock.now()
    invalid, valid = (due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=5)) for _ in range(2))
    write_by_sql(invalid, column, value)
    earliest = next_due()
    assert earliest is not None
    assert earliest <= now  # the valid schedule is due
    for _turn in range(2):
        claim_due(now, embedded=True)
        sweep(DatabaseBroker(), now)
    assert SchedulerExecution.objects.filter(scheduler=valid.pk, state=State.QUEUED.value).count() == 1
    valid.refresh_from_db()
    assert valid.next_run_at is not None
    assert valid.next_run_at > now


@pytest.mark.parametrize("state", ["queued", "retrying", "running"])
@pytest.mark.parametrize(("column", "value"), EXECUTION_VALUES, ids=short(EXECUTION_VALUES))
def test_an_invalid_execution_does_not_stop_others(column: str, value: str, state: str) -> None:
    now = clock.now()
    past = now - timedelta(minutes=5)
    invalid = ManualExecutionFactory(state=state, wake_at=past)
    valid = ManualExecutionFactory(wake_at=past)
    write_by_sql(invalid, column, value)
    broker, configs = DatabaseBroker(), RunConfigs()
    writer = RowWriter(broker, ["main"], 60, configs, Answers(broker), Rescue(broker, ["main"]))
    sweep(broker, now, configs)
    started: list[int | None] = []
    for _turn in range(3):
        _settled, _deliveries, arrivals = writer.write([], 5, now)
        started += [arrival.delivery.message.execution_id for arrival in arrivals if arrival.started]
    assert valid.pk in started
    ((state_now, reason),) = SchedulerExecution.objects.filter(pk=invalid.pk).values_list("state", "error_message")
    # The row failed with a reason, or it started, or it still waits because its time cannot be read.
    assert state_now in {"failed", "running", "retrying", "queued"}
    assert reason or state_now != "failed"
    if column == "attempt" and connection.vendor == "sqlite":  # the other databases round and clip the value
        assert state_now == "failed"


@pytest.mark.parametrize(("column", "value"), [("params", "null"), ("next_run_at", "2020-13-45 00:00:00")])
def test_a_schedule_that_is_set_aside_names_the_column(column: str, value: str) -> None:
    # Both instants lie in one minute. Else two rows are inserted, and MySQL stores NULL of a second row as a default if
    # it is told to accept invalid dates.
    now = clock.now().replace(second=30)
    row = due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=5))
    write_by_sql(row, column, value)
    assert claim_due(now, embedded=True).broken == 1
    ((reason, following),) = Scheduler.objects.filter(pk=row.pk).values_list("plan_error", "next_run_at")
    assert reason.startswith(f"Column {column}: ")
    assert following is None


@pytest.mark.parametrize(
    ("column", "value"), [("params", f'{{"x": {BIG}}}'), ("attempt", "many"), ("scheduled_at", "2020-13-45 00:00:00")]
)
def test_an_execution_that_is_set_aside_names_the_column(column: str, value: str) -> None:
    if connection.vendor == "mysql" and column != "params":
        pytest.skip("MySQL and MariaDB store another value, which can be used")
    now = clock.now()
    row = ManualExecutionFactory(wake_at=now - timedelta(minutes=5))
    write_by_sql(row, column, value)
    broker, configs = DatabaseBroker(), RunConfigs()
    writer = RowWriter(broker, ["main"], 60, configs, Answers(broker), Rescue(broker, ["main"]))
    writer.write([], 5, now)
    ((state, reason),) = SchedulerExecution.objects.filter(pk=row.pk).values_list("state", "error_message")
    assert state == "failed"
    assert reason.startswith(f"Column {column}: ")
    (finding,) = bad_rows.examine(Present(now))
    assert [named.pk for named in finding.rows] == [row.pk]


def test_a_replay_that_cannot_be_read_is_stopped() -> None:
    now = clock.now()
    rows = [
        Replay.objects.create(
            key=uuid.uuid4(), requested_by="another user", created_at=now, selection="all", state=state, total=1,
            next_at=now, finished_at=now,
        )
        for state in ("released", "waiting", "collecting")
    ]  # fmt: skip
    values = {"sqlite": "2026-02-30 00:00:00", "postgresql": "infinity"}
    if connection.vendor not in values:
        pytest.skip("this database returns NULL for an instant that it cannot read")
    for row in rows:
        write_by_sql(row, "finished_at", values[connection.vendor])
    sweep(DatabaseBroker(), now)
    stopped = Replay.objects.filter(state="stopped", reason__startswith="It cannot be read")
    assert stopped.count() == len(rows)


@pytest.mark.skipif(connection.vendor != "mysql", reason="only here Django raises this error without the driver's")
def test_a_refused_check_is_no_absent_database() -> None:
    with pytest.raises(IntegrityError) as caught:
        SchedulerFactory(worker=None)
    assert not is_away(caught.value)


@pytest.mark.parametrize("text", ["2026-03-10T12:00:00", "2026-03-10 12:00", "2026-03-10 12:00:00"])
def test_a_date_that_plain_sql_wrote_in_another_form_is_claimed_once(text: str) -> None:
    row = SchedulerFactory(once=True)
    write_by_sql(row, "date_time", text)
    for _turn in range(2):
        sweep(DatabaseBroker(), clock.now())
        claim_due(clock.now(), embedded=True)
    assert SchedulerExecution.objects.filter(scheduler=row).count() == 1
    row.refresh_from_db()
    assert (row.next_run_at, row.status) == (None, False)


def test_a_date_that_reads_as_none_does_not_stop_a_cron_schedule() -> None:
    """MySQL and MariaDB store 0000-00-00, which is not NULL, and return NULL for it."""
    row = due(SchedulerFactory(schedule="* * * * *"), clock.now().replace(second=0, microsecond=0))
    with lenient():
        if write(Scheduler, Scheduler._meta.get_field("date_time"), row.pk, "0000-00-00 00:00:00") is None:
            pytest.skip("this database does not store such a date")
        for _turn in range(3):
            sweep(DatabaseBroker(), clock.now())
            claim_due(clock.now(), embedded=True)
    row.refresh_from_db(fields=["next_run_at", "plan_error"])
    if row.next_run_at is None:
        assert row.plan_error
    else:
        assert row.next_run_at > clock.now() - timedelta(seconds=2)
        assert SchedulerExecution.objects.filter(scheduler=row, state=State.QUEUED.value).exists()


def test_a_schedule_without_times_has_a_reason() -> None:
    row = SchedulerFactory()
    with lenient():
        if write(Scheduler, Scheduler._meta.get_field("schedule"), row.pk, "") is None:
            pytest.skip("this database always checks its constraints")
        sweep(DatabaseBroker(), clock.now())
    row.refresh_from_db()
    assert row.next_run_at is None
    assert "neither a cron expression nor a date" in row.plan_error


@pytest.mark.parametrize("value", ["-", b"\xff", 2.5, float("nan"), True])
def test_retry_values_of_another_type_are_ignored(value: Any) -> None:
    schedule = Scheduler(retry_delay_ms=value, max_retries=value)
    assert retry_policy(None, schedule) == inherited_policy(None)


@pytest.mark.parametrize("text", ["1969-12-31 00:01:00", "1970-01-01T00:00:00+23:59"])
def test_a_stale_plan_before_the_first_year_is_planned_anew(text: str) -> None:
    if connection.vendor == "mysql" and "+" in text:
        pytest.skip("MySQL and MariaDB store 1970 itself: they shift the offset, or leave it out")
    row = SchedulerFactory(schedule="* * * * *")
    write_by_sql(row, "next_run_at", text)
    write_by_sql(row, "planned_schedule", "0 0 1 1 *")
    now = clock.now()
    sweep(DatabaseBroker(), now)
    earliest = next_due()
    assert earliest is not None
    assert earliest > now


def test_a_date_before_the_first_year_has_a_reason() -> None:
    row = SchedulerFactory(once=True)
    write_by_sql(row, "date_time", "1969-12-31 23:59:59")
    sweep(DatabaseBroker(), clock.now())
    row.refresh_from_db()
    assert row.next_run_at is None
    assert "before 1970" in row.plan_error
