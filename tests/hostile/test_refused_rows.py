"""The database refuses every change of one row, even the mark that it cannot be used. The other rows still run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.row_writer import RowWriter
from scheduling.execution.claim import claim_due, next_due
from scheduling.execution.retention import prune
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import RefusedRow, Scheduler, SchedulerExecution
from scheduling.models.refused_row import REMEMBERED
from scheduling.monitoring.findings import bad_rows
from scheduling.monitoring.findings.present import Present
from scheduling.processes import left_out
from scheduling.processes.left_out import LEFT_OUT_SECONDS, LeftOut
from scheduling.producer.sweeps import sweep
from tests.factories import ManualExecutionFactory, SchedulerFactory, due

EXECUTION = RefusedRow.Kind.EXECUTION

pytestmark = pytest.mark.django_db(transaction=True)

TRIGGERS = {
    "sqlite": [
        "CREATE TRIGGER refuse BEFORE UPDATE ON {0} WHEN OLD.id = {1} BEGIN SELECT RAISE(ABORT, 'refused'); END"
    ],
    "mysql": [
        "CREATE TRIGGER refuse BEFORE UPDATE ON {0} FOR EACH ROW BEGIN "
        "IF OLD.id = {1} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF; END"
    ],
    "postgresql": [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF OLD.id = {1} THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$",
        "CREATE TRIGGER refuse BEFORE UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION refuse()",
    ],
}


@contextmanager
def refused(row: Scheduler | SchedulerExecution) -> Iterator[None]:
    """Make the database refuse every change of a row."""
    table = row._meta.db_table
    with connection.cursor() as cursor:
        for statement in TRIGGERS[connection.vendor]:
            cursor.execute(statement.format(table, row.pk))
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(
                f"DROP TRIGGER refuse ON {table}" if connection.vendor == "postgresql" else "DROP TRIGGER refuse"
            )
            if connection.vendor == "postgresql":
                cursor.execute("DROP FUNCTION refuse()")


def found(now: datetime) -> dict[str, list[int | None]]:
    """The primary keys that each finding names."""
    return {finding.check: [row.pk for row in finding.rows] for finding in bad_rows.examine(Present(now))}


def test_a_schedule_that_refuses_its_mark_stops_no_other_one(caplog: pytest.LogCaptureFixture) -> None:
    now = clock.now()
    bad, good = (due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=5)) for _ in range(2))
    with refused(bad):
        for _turn in range(3):
            next_due()
            claim_due(now, embedded=True)
            sweep(DatabaseBroker(), now)
        # If a minute began within the last five seconds, the earlier occurrence is skipped as missed.
        queued = SchedulerExecution.objects.filter(state="queued")
        assert list(queued.values_list("scheduler", flat=True)) == [good.pk]
        earliest = next_due()
        assert earliest is not None
        assert earliest > now  # the producer sleeps until then
        assert found(now) == {"refused scheduler": [bad.pk]}
    assert [record.levelname for record in caplog.records if "is left out" in record.message] == ["ERROR"]
    left_out.schedules.clear()  # as after a minute
    claim_due(now, embedded=True)
    assert queued.filter(scheduler=bad).count() == 1


@pytest.mark.parametrize("state", ["claimed", "queued", "retrying", "running"])
def test_an_execution_that_refuses_its_mark_stops_no_other_one(state: str) -> None:
    now = clock.now()
    past = now - timedelta(minutes=5)
    bad = ManualExecutionFactory(state=state, attempt=0 if state in ("claimed", "queued") else 1, wake_at=past)
    good = ManualExecutionFactory(wake_at=past)
    broker, configs = DatabaseBroker(), RunConfigs()
    writer = RowWriter(broker, ["main"], 60, configs, Answers(broker), Rescue(broker, ["main"]))
    with refused(bad):
        started: list[int | None] = []
        for _turn in range(3):
            sweep(broker, now, configs)
            _settled, _deliveries, arrivals = writer.write([], 5, now)
            started += [arrival.delivery.message.execution_id for arrival in arrivals if arrival.started]
        assert started == [good.pk]
        assert not broker.ready(["main"], now)  # the consumer does not spin
        assert found(now) == {"refused execution": [bad.pk]}
    left_out.executions.clear()  # as after a minute
    sweep(broker, now, configs)
    _settled, _deliveries, arrivals = writer.write([], 5, clock.now())
    assert [arrival.delivery.message.execution_id for arrival in arrivals if arrival.started] == [bad.pk]


def test_a_row_is_left_out_for_a_minute() -> None:
    times = [0.0]
    rows, row = LeftOut(EXECUTION, lambda: times[-1]), ManualExecutionFactory()
    rows.add(row.pk, ValueError("refused"), clock.now())
    assert not rows.without(SchedulerExecution.objects.all()).exists()
    times.append(LEFT_OUT_SECONDS + 1)
    assert rows.without(SchedulerExecution.objects.all()).exists()


def test_a_process_learns_which_rows_another_process_has_tried() -> None:
    now, other = clock.now(), LeftOut(EXECUTION)
    tried, earlier = ManualExecutionFactory(), ManualExecutionFactory()
    other.add(earlier.pk, ValueError("refused"), now - timedelta(seconds=LEFT_OUT_SECONDS + 1))
    other.add(tried.pk, ValueError("refused"), now)
    left_out.refresh(now)
    assert list(left_out.executions.without(SchedulerExecution.objects.all())) == [earlier]
    assert list(left_out.schedules.without(Scheduler.objects.filter(pk=tried.pk))) == list(
        Scheduler.objects.filter(pk=tried.pk)
    )


def test_one_record_for_a_row_however_often_it_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    now, processes = clock.now(), [LeftOut(EXECUTION), LeftOut(EXECUTION)]
    for minute in range(3):
        for process in processes:
            process.add(7, ValueError(f"refused {minute}"), now + timedelta(minutes=minute))
    record = RefusedRow.objects.get()
    assert (record.row_id, record.error, record.since) == (7, "ValueError: refused 2", now)
    assert len(caplog.records) == 1
    later = now + timedelta(minutes=2) + REMEMBERED + timedelta(seconds=1)
    assert not RefusedRow.objects.present(later).exists()
    processes[0].add(7, ValueError("again"), later)  # it was mended, and is refused once more
    assert RefusedRow.objects.get().since == later
    assert len(caplog.records) == 2


def test_cleanup_removes_the_records_of_rows_that_were_mended() -> None:
    now = clock.now()
    for pk, tried in ((1, now), (2, now - REMEMBERED - timedelta(seconds=1))):
        LeftOut(EXECUTION).add(pk, ValueError("refused"), tried)
    assert prune(now, 30, dry_run=True).refused_rows == 1
    assert prune(now, 30).refused_rows == 1
    assert RefusedRow.objects.get().row_id == 1


def test_the_number_of_rows_that_are_left_out_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_out, "MOST_ROWS", 2)
    rows, all_rows = LeftOut(EXECUTION), [ManualExecutionFactory() for _ in range(3)]
    for row in all_rows:
        rows.add(row.pk, ValueError("refused"), clock.now())
    assert list(rows.without(SchedulerExecution.objects.all())) == all_rows[:1]
