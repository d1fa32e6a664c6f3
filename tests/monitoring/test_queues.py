"""A queue that no consumer serves is a finding."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, connection
from django.utils import timezone as clock

from scheduling.core.lifecycle import State
from scheduling.handlers import registry
from scheduling.handlers.registry import worker
from scheduling.models import Process, Scheduler, SchedulerExecution
from scheduling.models.used_queues import used_queues
from scheduling.monitoring.findings import queues
from scheduling.monitoring.findings.areas import problems
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.monitoring.findings.present import Present
from tests.factories import ProcessFactory, SchedulerExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db


def serving(text: str) -> Process:
    return ProcessFactory(kind="consumer", info={"queue": text, "running": 0})


def found() -> list[Finding]:
    return list(queues.examine(Present(clock.now())))


def names(finding: Finding) -> set[str]:
    return {named.name for named in finding.rows}


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer that serves the queue of a worker, too."""
    serving("main,mail,reports")
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
    worker("tests.urgent_mail", queue="mail")(lambda params, run: None)


def test_nothing_is_found_while_each_queue_has_a_consumer() -> None:
    SchedulerExecutionFactory(queue="reports.low", wake_at=clock.now())
    SchedulerFactory(queue="reports")
    assert found() == []


@pytest.mark.parametrize("queue", ["slow", "slow.high"])
@pytest.mark.parametrize("columns", [{}, {"claimed": True}, {"retrying": True}])
def test_runs_in_a_queue_without_a_consumer_are_found(queue: str, columns: dict[str, Any]) -> None:
    for _ in range(2):
        SchedulerExecutionFactory(queue=queue, wake_at=clock.now(), **columns)
    (finding,) = found()
    assert (finding.level, finding.seen) == (
        Level.FAIL, "No consumer serves the queue “slow”. Runs that wait in it: 2.",
    )  # fmt: skip
    assert finding.advice == "Start: manage.py run_worker --queue slow"
    assert finding in problems(Present(clock.now()))
    serving("slow")
    assert found() == []


def test_the_immediate_queue_needs_a_consumer_as_soon_as_runs_wait_in_it() -> None:
    row = SchedulerExecutionFactory(queue="immediate", wake_at=clock.now())
    (finding,) = found()
    assert finding.advice == "Start: manage.py run_worker --queue immediate"
    SchedulerExecution.objects.filter(pk=row.pk).update(state="succeeded")
    assert found() == []


def test_a_silent_consumer_serves_no_queue() -> None:
    SchedulerExecutionFactory(queue="slow", wake_at=clock.now())
    row = serving("slow")
    assert found() == []
    Process.objects.filter(pk=row.pk).update(heartbeat_at=clock.now() - timedelta(minutes=5))
    assert len(found()) == 1


def test_a_queue_in_which_nothing_waits_yet_is_a_warning() -> None:
    SchedulerFactory(queue="slow")
    SchedulerFactory(queue="paused", off=True)
    Process.objects.all().delete()
    serving("main,reports")
    (finding,) = found()
    assert (finding.level, names(finding)) == (Level.WARN, {"slow", "mail"})


def test_a_name_from_plain_sql_is_shown_and_named_as_such() -> None:
    row = SchedulerExecutionFactory(wake_at=clock.now())
    SchedulerExecution.objects.filter(pk=row.pk).update(queue="A \u202e%s")
    Scheduler.objects.filter(pk=SchedulerFactory().pk).update(queue="%(count)s")
    fails = [finding for finding in found() if finding.level is Level.FAIL]
    assert [("\\u202e%s" in finding.seen, "plain SQL" in finding.advice) for finding in fails] == [(True, True)]
    assert all(str(finding.in_full) for finding in found())


def test_the_used_queues_are_found_with_one_query_for_each(django_assert_num_queries: Any) -> None:
    SchedulerExecutionFactory.create_batch(5, queue="b")
    SchedulerExecutionFactory.create_batch(5, queue="a.low")
    SchedulerExecutionFactory(queue="c", running=True)
    with django_assert_num_queries(3):
        assert used_queues([State.QUEUED]) == ["a.low", "b"]


def test_a_handler_that_each_consumer_of_its_queue_leaves_out_is_found() -> None:
    Process.objects.all().delete()
    ProcessFactory(kind="consumer", info={"queue": "main", "handlers": "--except tests.noop,tests.urgent_mail"})
    narrow = ProcessFactory(kind="consumer", info={"queue": "main,mail", "handlers": "--only tests.noop"})
    (finding,) = found()
    assert (finding.check, finding.level) == ("left out handlers", Level.WARN)
    assert "worker tests.urgent_mail" in names(finding)
    assert "worker tests.noop" not in names(finding)
    narrow.delete()
    (finding, _unserved) = found()
    assert "worker tests.noop" in names(finding)
    serving("main,mail")
    assert found() == []


@pytest.mark.parametrize("value", ["nonsense", 7, None, ["--only"], "--only\x00", "--except " + "*" * 10_000])
def test_a_choice_that_plain_sql_has_written_is_no_error(value: Any) -> None:
    Process.objects.all().delete()
    try:
        ProcessFactory(kind="consumer", info={"queue": "main,mail", "handlers": value})
    except DataError as error:
        pytest.skip(f"refused by {connection.vendor}: {error!s:.80}")
    assert {finding.check for finding in found()} <= {"left out handlers"}
