"""`drain` claims and runs everything that is due, inside a TestCase, with the rows that real processes write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone as clock
from pydantic import BaseModel

from scheduling.api import run, status
from scheduling.handlers import Run, worker
from scheduling.models import Attempt, Output, SchedulerExecution, Worker
from scheduling.processes.identity import container_id
from scheduling.signals import execution_failed
from scheduling.testing import NeverEmpty, NotTheDatabaseTransport, RunOutcome, drain
from tests.factories import SchedulerFactory, due


class Base:
    """The tests that hold both in the transaction of a TestCase and without one."""

    def test_runs_that_code_asks_for_have_the_rows_of_a_real_run(self) -> None:
        made = run("tests.talk", by="ann")
        (ran,) = drain()
        assert (ran.execution_id, ran.handler, ran.attempt, ran.state) == (made.id, "tests.talk", 1, "succeeded")
        row = SchedulerExecution.objects.get(pk=made.id)
        assert (row.state, row.attempt, row.progress, row.requested_by) == ("succeeded", 1, "3/10", "ann")
        attempt = Attempt.objects.get(execution=row.pk)
        assert (attempt.outcome, attempt.exit_code, attempt.consumer) == ("succeeded", 0, container_id())
        text = "".join(Output.objects.filter(execution_id=row.pk).order_by("sequence").values_list("text", flat=True))
        assert [line.split(" ", 1)[1] for line in text.splitlines()] == [
            "OUT plain print", "OUT to stderr", "INFO logged info", "WARN logged warning", "SUCCESS logged success",
        ]  # fmt: skip
        assert drain() == []

    def test_due_schedules_are_claimed_and_run_and_move_on(self) -> None:
        late = due(SchedulerFactory(handler="tests.give", params={"value": 5}), clock.now() - timedelta(minutes=1))
        SchedulerFactory(once=True)
        (ran,) = drain()
        assert (ran.result, ran.scheduled_at) == (5, late.next_run_at)
        late.refresh_from_db()
        assert late.next_run_at is not None
        assert late.next_run_at > clock.now()

    def test_an_error_is_raised_after_its_attempt_is_recorded(self) -> None:
        made = run("tests.fail")
        with pytest.raises(RuntimeError, match="cannot reach the service, attempt 1"):
            drain()
        found = status(made.id)
        assert (found.state, found.error) == ("retrying", "RuntimeError: cannot reach the service, attempt 1")
        assert SchedulerExecution.objects.get(pk=made.id).reason == "Retry 1 of 2 follows."
        assert drain() == [], "its retry waits"

    def test_a_due_retry_runs_and_a_permanent_failure_is_reported(self) -> None:
        made = run("tests.fail")
        told: list[int] = []

        def receive(execution_id: int, **_arguments: object) -> None:
            told.append(execution_id)

        execution_failed.connect(receive)
        try:
            attempts = []
            for _number in range(4):
                attempts += [ran.attempt for ran in drain(raise_errors=False)]
                SchedulerExecution.objects.filter(state="retrying").update(wake_at=clock.now())
        finally:
            execution_failed.disconnect(receive)
        assert attempts == [1, 2, 3]
        assert status(made.id).state == "failed"
        assert told == [made.id]

    def test_what_a_run_asks_for_runs_too(self) -> None:
        made = run("tests.fan_out")
        first, *others = drain()
        assert first.execution_id == made.id
        assert [ran.execution_id for ran in others] == first.result
        assert [ran.handler for ran in others] == ["tests.noop"] * 2

    def test_a_run_that_cannot_be_used_does_not_stop_the_next_one(self) -> None:
        bad, good = run("tests.typed"), run("tests.noop")
        SchedulerExecution.objects.filter(pk=bad.id).update(params={"since_days": "x"})
        found = drain(raise_errors=False)
        assert [ran.outcome for ran in found] == ["failed", "succeeded"]
        assert (status(bad.id).state, status(good.id).state) == ("failed", "succeeded")


class InATransaction(Base, TestCase):
    """As in the TestCase of a project."""


class WithoutATransaction(Base, TransactionTestCase):
    """As in the TransactionTestCase of a project."""

    def setUp(self) -> None:
        for name in ("fan_out", "give", "noop", "fail", "talk", "typed"):
            Worker.objects.get_or_create(name=f"tests.{name}")


Register = Callable[[Callable[[], object]], str]


@pytest.fixture
def registered(own_handlers: None) -> Register:
    """Register a function without arguments as a worker."""

    def register(function: Callable[[], object]) -> str:
        @worker("testing.own")
        def own(params: BaseModel, run: Run) -> Any:
            return function()

        return "testing.own"

    return register


@pytest.mark.django_db
def test_a_failed_statement_leaves_the_transaction_of_the_test_usable(registered: Register) -> None:
    called: list[str] = []

    def twice() -> None:
        transaction.on_commit(lambda: called.append("for what was undone"))
        for _number in range(2):
            Worker.objects.bulk_create([Worker(name="testing.twice")])

    made = run(registered(twice))
    with pytest.raises(IntegrityError):
        drain()
    assert status(made.id).error.startswith("django.db.utils.IntegrityError")
    assert not connection.needs_rollback
    assert called == []


@pytest.mark.django_db
def test_callbacks_of_the_commit_are_called(registered: Register) -> None:
    called = []

    def handler() -> None:
        with transaction.atomic(durable=True):
            transaction.on_commit(lambda: called.append(run("tests.noop").id))
        with transaction.atomic():
            transaction.on_commit(lambda: called.append(0))
            transaction.set_rollback(True)

    run(registered(handler))
    found = drain()
    assert [ran.execution_id for ran in found[1:]] == called
    assert len(called) == 1


@pytest.mark.django_db
def test_a_handler_that_always_asks_for_itself_ends(registered: Register) -> None:
    run(registered(lambda: run("testing.own").id))
    with pytest.raises(NeverEmpty, match="After 20 runs"):
        drain(most_runs=20)
    assert SchedulerExecution.objects.filter(state="succeeded").count() == 21, "more than 20 runs are one run too many"


@pytest.mark.django_db
def test_services_run_only_if_the_test_says_so() -> None:
    service = SchedulerFactory(stay_alive=True)
    due(service, clock.now())
    assert drain() == []
    assert [ran.handler for ran in drain(services=True)] == ["tests.noop"]


@pytest.mark.django_db
def test_a_broker_is_refused_with_what_to_do() -> None:
    with (
        override_settings(BROKER_URL="amqp://guest:guest@127.0.0.1:1/"),
        pytest.raises(NotTheDatabaseTransport, match='BROKER_URL = "database://"'),
    ):
        drain()


@pytest.mark.django_db
def test_the_fixture_drains(cron_drain: Callable[[], list[RunOutcome]], cron_run: Callable[..., RunOutcome]) -> None:
    run("tests.noop")
    assert len(cron_drain()) == 1
    assert cron_run("tests.noop").outcome == "succeeded"
