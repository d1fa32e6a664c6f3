"""A monitor with the Healthchecks protocol is told when a run starts, and once how it has ended."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.core.lifecycle import State
from scheduling.core.pings import Kind
from scheduling.core.retention import Rule
from scheduling.execution.cancel import cancel
from scheduling.execution.retention.pruned import Pruned
from scheduling.execution.retention.removal import remove
from scheduling.inbox.actions import republish
from scheduling.models import Ping, Scheduler, SchedulerExecution
from scheduling.pings.rows import Ended, note_ends, note_other_ends
from scheduling.pings.sender import Sender
from scheduling.testing import drain
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.pings.healthchecks_server import Healthchecks
from tests.pings.outputs import failed_run

pytestmark = pytest.mark.django_db


def schedule(healthchecks: Healthchecks, handler: str, **columns: Any) -> tuple[Scheduler, uuid.UUID]:
    """Make a schedule with a check of its own."""
    check = uuid.uuid4()
    return SchedulerFactory(rare=True, handler=handler, ping_url=healthchecks.url(check), **columns), check


def send() -> None:
    """Send all that is due."""
    sender = Sender()
    while sender.send_due(clock.now()):
        pass


def work() -> None:
    """Run all that is due, and send what is to be told."""
    drain(raise_errors=False)
    send()


def due(row: SchedulerExecution) -> None:
    """Let the retry of an execution be due now."""
    SchedulerExecution.objects.filter(pk=row.pk).update(wake_at=clock.now() - timedelta(seconds=1))


def test_a_run_that_succeeds_is_told_with_one_id(healthchecks: Healthchecks) -> None:
    row, check = schedule(healthchecks, "tests.noop")
    ManualExecutionFactory(scheduler=row)
    work()
    found = healthchecks.check(check)
    assert [event for event, _rid in found.log] == ["start", "success"]
    assert len({rid for _event, rid in found.log}) == 1
    assert (found.status, found.started) == ("up", {})
    assert found.finished == [found.log[0][1]]


def test_each_run_has_an_id_of_its_own(healthchecks: Healthchecks) -> None:
    row, check = schedule(healthchecks, "tests.noop")
    ManualExecutionFactory.bulk(3, row)
    work()
    assert len(set(healthchecks.check(check).finished)) == 3


def test_a_retry_is_neither_a_start_nor_a_failure(healthchecks: Healthchecks, caplog: pytest.LogCaptureFixture) -> None:
    row, check = schedule(healthchecks, "tests.fail", max_retries=2)
    execution = ManualExecutionFactory(scheduler=row)
    for _attempt in range(2):
        work()
        assert [event for event, _rid in healthchecks.check(check).log] == ["start"]
        due(execution)
    work()
    found = healthchecks.check(check)
    assert [event for event, _rid in found.log] == ["start", "fail"]
    assert (found.status, len(found.finished)) == ("down", 1)
    assert "A ping cannot be recorded" not in caplog.text  # the unique constraint was not needed


def test_a_republished_run_is_a_new_start_with_a_new_id(healthchecks: Healthchecks, embedded: Any) -> None:
    row, check = schedule(healthchecks, "tests.fail", max_retries=0)
    execution = ManualExecutionFactory(scheduler=row)
    work()
    republish([execution.pk], embedded, "ann")
    work()
    found = healthchecks.check(check)
    assert [event for event, _rid in found.log] == ["start", "fail", "start", "fail"]
    assert len(set(found.finished)) == 2


def test_a_failure_is_told_with_its_error_and_the_last_lines(healthchecks: Healthchecks) -> None:
    check = uuid.uuid4()
    execution = failed_run(check, healthchecks, lines=2_000)
    send()
    (body,) = healthchecks.check(check).bodies
    assert 9_000 < len(body.encode()) <= 10_000
    assert "ValueError: the invoice has no total" in body
    assert body.rstrip().endswith("line 1999 ż")
    assert "line 0 " not in body
    assert execution.execution_key in body


def test_a_run_of_a_schedule_without_a_monitor_costs_no_statement() -> None:
    ManualExecutionFactory()
    with CaptureQueriesContext(connection) as queries:
        drain()
    assert queries.captured_queries
    assert not [query for query in queries.captured_queries if "scheduling_ping" in query["sql"]]


def test_a_run_that_is_cancelled_while_it_waits_for_its_retry_is_told_as_a_failure(healthchecks: Healthchecks) -> None:
    row, check = schedule(healthchecks, "tests.fail", max_retries=2)
    execution = ManualExecutionFactory(scheduler=row)
    work()
    assert note_other_ends(clock.now()) == 0
    assert cancel(execution.pk, "ann") == "cancelled"
    assert note_other_ends(clock.now()) == 1
    assert note_other_ends(clock.now()) == 0
    send()
    found = healthchecks.check(check)
    assert [event for event, _rid in found.log] == ["start", "fail"]
    assert "Cancelled by ann." in found.bodies[0]
    assert len(found.finished) == 1


def test_a_monitor_that_a_schedule_gets_while_it_runs_is_told_the_end(healthchecks: Healthchecks) -> None:
    row, check = schedule(healthchecks, "tests.noop")
    url, row.ping_url = row.ping_url, ""
    row.save()
    execution = ManualExecutionFactory(scheduler=row)
    drain()
    row.ping_url = url
    row.save()
    assert note_ends([Ended(execution.pk, 1, State.SUCCEEDED, [Kind.HEALTHCHECKS])], clock.now()) == 1
    send()
    assert [event for event, _rid in healthchecks.check(check).log] == ["success"]


def test_the_cleanup_removes_pings_with_their_execution(healthchecks: Healthchecks) -> None:
    row, _check = schedule(healthchecks, "tests.noop")
    execution = ManualExecutionFactory(scheduler=row)
    work()
    done = Pruned()
    remove({execution.pk: Rule.SUCCESS}, done, dry_run=False)
    assert not SchedulerExecution.objects.exists()
    assert not Ping.objects.exists()


def test_a_ping_that_the_database_refuses_does_not_stop_the_run(healthchecks: Healthchecks) -> None:
    row, _check = schedule(healthchecks, "tests.noop")
    execution = ManualExecutionFactory(scheduler=row)
    other = ManualExecutionFactory(scheduler=row)
    # Another row has the place of this run's start.
    Ping.objects.create(
        execution=other, scheduler_id=row.pk, kind="healthchecks", event="start", attempt=1, run_id=uuid.uuid4(),
        begun_at=clock.now(), created_at=clock.now(), at=clock.now(), open_execution=execution.pk,
    )  # fmt: skip
    drain()
    states = {*SchedulerExecution.objects.values_list("state", flat=True)}
    assert states == {"succeeded"}
