"""Details of the original contract that handlers, operators and other programs rely on."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone as clock

from reports.models import Report
from scheduling.broker.database import DatabaseBroker
from scheduling.execution.claim import claim_due
from scheduling.models import Attempt, Output, Process, Scheduler, SchedulerExecution
from scheduling.producer.sweeps import sweep
from tests.factories import ManualExecutionFactory, SchedulerFactory, UserFactory, due
from tests.support import Commands, marks, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.processes
def test_a_handler_knows_the_number_of_its_retry_and_its_key(commands: Commands) -> None:
    execution = ManualExecutionFactory(scheduler__handler="tests.tell_retry")
    code, log = commands.run("run_worker", "--max-runs", "3")
    assert code == 0, log
    output = Output.objects.filter(execution=execution).order_by("attempt", "sequence")
    text = "".join(output.values_list("text", flat=True))
    found = [line.split(" OUT ")[1] for line in text.splitlines() if " OUT " in line]
    key = f"key {execution.pk} {execution.execution_key}"
    assert found == [
        "retry 0 0, attempt 1, not last", key,
        "retry 1 1, attempt 2, not last", key,
        "retry 2 2, attempt 3, last", key,
    ]  # fmt: skip


@pytest.mark.processes
def test_the_class_of_an_error_decides_about_the_retry(commands: Commands) -> None:
    policy = {"max_retries": 2, "retry_delay_ms": 60_000}
    ends = {}
    for name in ("tests.never_again", "tests.fail", "tests.soon_again", "tests.gives_up", "tests.cannot_judge"):
        schedule = SchedulerFactory(rare=True, handler=name, **policy)
        ends[name] = ManualExecutionFactory(scheduler=schedule)
    code, log = commands.run("run_worker", "--max-runs", "5")
    assert code == 0, log
    for execution in ends.values():
        execution.refresh_from_db()
    waits = {
        name: attempt.retry_at and (attempt.retry_at - attempt.finished_at).total_seconds()
        for name, execution in ends.items()
        for attempt in Attempt.objects.filter(execution=execution)
    }
    assert waits == {
        "tests.never_again": None,
        "tests.fail": pytest.approx(60, abs=0.5),
        "tests.soon_again": pytest.approx(1.5, abs=0.5),
        "tests.gives_up": None,
        "tests.cannot_judge": pytest.approx(60, abs=0.5),
    }
    assert [execution.state for execution in ends.values()] == ["failed", "retrying", "retrying", "failed", "retrying"]


@pytest.mark.processes
def test_a_consumer_takes_one_message_at_a_time_by_default(commands: Commands, tmp_path: Path) -> None:
    schedule = SchedulerFactory(rare=True, handler="tests.mark", params={"directory": str(tmp_path), "seconds": 600})
    first, second = (ManualExecutionFactory(scheduler=schedule, params=schedule.params) for _ in range(2))
    commands.start("run_worker")
    wait_for(lambda: marks(tmp_path, first.pk), "the first run has started")
    beats = Process.objects.get(kind="consumer").heartbeat_at
    wait_for(lambda: Process.objects.get(kind="consumer").heartbeat_at > beats, "the consumer has looked again")
    assert Process.objects.get(kind="consumer").concurrency == 1
    second.refresh_from_db()
    assert (second.state, marks(tmp_path, second.pk)) == ("queued", [])


@pytest.mark.processes
def test_the_producer_logs_what_it_claimed_under_its_host_and_pid(commands: Commands) -> None:
    row = due(SchedulerFactory(rare=True), clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1))
    producer = commands.start("run_scheduler")
    wait_for(lambda: "Claimed 1, published 1, skipped 0" in commands.log(producer), "the claim is logged")
    execution = SchedulerExecution.objects.get(scheduler=row)
    assert execution.container_id.startswith(f"{socket.gethostname()[:80]}-{producer.pid}-")
    assert abs(execution.executed_at - clock.now()) < timedelta(minutes=2)


def test_sql_corrects_a_schedule_and_makes_it_active_and_it_runs_at_its_next_time() -> None:
    row = SchedulerFactory(schedule="* * * * *", off=True, handler="tests.typed", params={"since_days": 1})
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduling_scheduler SET status = %s, params = %s WHERE id = %s",
            [True, '{"since_days": 2}', row.pk],
        )
    now = clock.now()
    sweep(DatabaseBroker(), now)  # as a producer does every few seconds
    row.refresh_from_db()
    assert row.next_run_at is not None
    assert now < row.next_run_at <= now + timedelta(minutes=1)
    (execution,) = claim_due(row.next_run_at, embedded=True).claimed
    assert (execution.scheduler_id, execution.params) == (row.pk, {"since_days": 2})


def test_sql_finds_the_schedule_of_a_failed_message() -> None:
    report = Report.objects.get(controller="failure_review")
    user = UserFactory(email="ann@example.com")
    row = Scheduler.objects.create(
        report=report, schedule="0 8 * * *", description="Daily review", params={"days": 1}, user=user
    )
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT s.description, s.schedule, s.params, r.controller, u.email FROM scheduling_scheduler s "
            f"LEFT JOIN {quote(Report._meta.db_table)} r ON r.id = s.report_id "
            f"LEFT JOIN {quote(type(user)._meta.db_table)} u ON u.id = s.user_id WHERE s.id = %s",
            [row.pk],
        )
        description, schedule, params, controller, email = cursor.fetchone()
    assert (description, schedule, controller, email) == (
        "Daily review", "0 8 * * *", "failure_review", "ann@example.com",
    )  # fmt: skip
    assert "days" in str(params)
