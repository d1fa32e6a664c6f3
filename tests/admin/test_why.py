"""The pages explain why an execution ran or did not run. Each test causes one situation and reads the explanation.

The tests start real processes and send real signals. They replace only the clock.
"""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.executions import surroundings
from scheduling.broker.database import DatabaseBroker
from scheduling.execution.claim import claim_due
from scheduling.execution.run_now import run_now
from scheduling.models import Process, Scheduler, SchedulerExecution, Worker
from scheduling.producer.sweeps import sweep
from tests.admin.pages import page_of, text_in
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def broker_not_asked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete the broker's last answer from the cache. Otherwise the pages would reuse this answer for 10 s."""
    monkeypatch.setattr(surroundings, "_broker_said", (0.0, ""))


@pytest.fixture
def consumer(commands: Commands) -> Any:
    """A consumer that runs as a real process."""
    process = commands.start("run_worker", "--concurrency", "3")
    commands.ready(process)
    return process


@pytest.fixture
def later() -> Iterator[Any]:
    """A function that moves the clock of the test process forward. The clock continues from the new time."""
    travels: list[time_machine.travel] = []

    def travel(**by: float) -> datetime:
        travels.append(time_machine.travel(clock.now() + timedelta(**by)))
        travels[-1].start()
        return clock.now()

    yield travel
    for travel in reversed(travels):
        travel.stop()


def text_of(client: Client, address: str) -> str:
    """Return a page's text without markup."""
    return text_in(client.get(address))


def explanation(client: Client, row: SchedulerExecution) -> str:
    """Return the explanation below the state on the execution's page."""
    response = client.get(page_of(row))
    sentences: list[str] = response.context["why"]
    said = " ".join(sentences)
    assert said in text_in(response)  # in the same answer, because a sentence may count seconds
    return said


def schedule_page(row: Scheduler) -> str:
    """Return the URL path of the schedule's page."""
    return reverse("admin:scheduling_scheduler_change", args=[row.pk])


def until(row: SchedulerExecution, *states: str) -> SchedulerExecution:
    """Wait until the row is in one of `states`, and return the row."""

    def there() -> bool:
        row.refresh_from_db()
        return row.state in states

    wait_for(there, f"execution {row.pk} is {' or '.join(states)}")
    return row


def waiting_execution(handler: str, **columns: Any) -> SchedulerExecution:
    """Return an execution of this handler that waits for a consumer. `columns` are columns of its schedule."""
    params = columns.pop("params", {})
    row = ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, **columns), params=params)
    return row


# --- nothing ran ------------------------------------------------------------------------------------


def test_paused(operator: Client) -> None:
    row = SchedulerFactory(schedule="0 12 * * *")
    row.status = False
    row.save()
    claim_due(clock.now() + timedelta(days=2), embedded=True)
    assert not SchedulerExecution.objects.exists()
    said = text_of(operator, schedule_page(row))
    assert "It is paused: these would be its next runs." in said
    assert "Next run: none" in said


def test_paused_after_it_had_fallen_due(operator: Client) -> None:
    row = due(SchedulerFactory(rare=True), clock.now() - timedelta(seconds=2))
    row.status = False
    row.save()
    claim_due(clock.now(), embedded=True)
    skipped = SchedulerExecution.objects.get()
    assert skipped.state == "skipped"
    assert explanation(operator, skipped) == (
        "The schedule was paused after the run fell due and before a producer claimed it."
    )


def test_missed(operator: Client) -> None:
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    row = due(SchedulerFactory(schedule="0 * * * *"), midnight - timedelta(hours=3))
    with time_machine.travel(midnight + timedelta(minutes=1)):
        said = text_of(operator, schedule_page(row))
        assert "It fell due 3 h 1 min ago, and no producer has claimed it. No producer is alive" in said
        claim_due(clock.now(), embedded=True)
        assert "It fell due" not in text_of(operator, schedule_page(row))
    missed, ran = SchedulerExecution.objects.order_by("pk")
    assert (missed.state, ran.state) == ("skipped", "queued")
    why, _stands, all_of = explanation(operator, missed).partition(" This execution stands for ")
    assert all_of == "all 3 of them. “Run again” starts one run."
    assert re.fullmatch(r"Missed 3 occurrences from .* 21:00 to .* 23:00 UTC: no producer was running\.", why), why


# --- claimed but not published ----------------------------------------------------------------------


@pytest.fixture
def closed_broker() -> Iterator[str]:
    """The URL of a broker that refuses connections. The port stays bound, so no other process can use the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"amqp://guest:hush@127.0.0.1:{taken.getsockname()[1]}/"


@pytest.fixture
def unpublished(commands: Commands, settings: Any, closed_broker: str) -> Any:
    """An execution that is claimed but not published, because the producer could not reach its broker."""
    settings.BROKER_URL = closed_broker
    due(SchedulerFactory(rare=True), clock.now() - timedelta(seconds=1))
    commands.start("run_scheduler", BROKER_URL=closed_broker)
    wait_for(SchedulerExecution.objects.filter(state="claimed").exists, "a claim")
    return SchedulerExecution.objects.order_by("pk")[0]


def test_the_broker_is_down(unpublished: SchedulerExecution, operator: Client, later: Any, closed_broker: str) -> None:
    assert explanation(operator, unpublished).startswith(f"Claimed by {unpublished.container_id}. It waits for the")
    later(seconds=11)
    said = explanation(operator, unpublished)
    assert "The broker cannot be used: " in said
    assert closed_broker.split("@")[1].rstrip("/") in said
    assert "The run is published when the broker is back." in said
    assert "hush" not in said
    assert "No producer is alive" not in said
    assert "No consumer of the queue “main” is alive" in said


def test_claimed_by_a_process_that_died(
    unpublished: SchedulerExecution, commands: Commands, operator: Client, later: Any
) -> None:
    (producer,) = commands.started
    commands.stop(producer, signal.SIGKILL)
    later(minutes=5)
    said = explanation(operator, unpublished)
    assert f"Its producer {unpublished.container_id} lost contact " in said
    assert "No producer is alive to continue it: start one with manage.py run_scheduler." in said


def test_claimed_by_a_process_that_was_stopped(
    unpublished: SchedulerExecution, commands: Commands, operator: Client, later: Any
) -> None:
    (producer,) = commands.started
    commands.stop(producer)
    later(seconds=30)
    said = explanation(operator, unpublished)
    assert f"Its producer {unpublished.container_id} was stopped before the broker confirmed" in said


# --- an attempt failed, or an operator cancelled the execution --------------------------------------


def test_waiting_for_its_retry(consumer: Any, operator: Client) -> None:
    row = until(waiting_execution("tests.fail", retry_delay_ms=60_000), "retrying")
    assert re.fullmatch(
        r"Attempt 1 failed: RuntimeError: cannot reach the service, attempt 1\. "
        r"Retry 1 of 2 follows\. The next attempt is due in (1 min|\d+ s)\.",
        explanation(operator, row),
    ), explanation(operator, row)
    assert "next attempt due in " in text_of(operator, page_of(row))


def test_timed_out(consumer: Any, operator: Client) -> None:
    row = until(waiting_execution("tests.hang"), "failed")
    assert explanation(operator, row).startswith(
        "Attempt 1 failed: TimedOut: It ran longer than its time limit of 1 s and was ended."
    )
    assert "signal SIGKILL" in text_of(operator, page_of(row))  # the handler ignored SIGTERM


def test_killed(consumer: Any, operator: Client) -> None:
    row = until(waiting_execution("tests.die", max_retries=0), "failed")
    assert explanation(operator, row).startswith(
        "Attempt 1 failed: Crashed: The child process was ended by signal 9 (KILL; often the kernel, out of"
    )


def test_killed_with_its_consumer(consumer: Any, commands: Commands, operator: Client, later: Any) -> None:
    row = until(waiting_execution("tests.mark", params={"seconds": 600}, max_retries=0), "running")
    commands.stop(consumer, signal.SIGKILL)
    now = later(seconds=60)
    said = explanation(operator, row)
    assert said.startswith(f"The consumer {row.consumer} lost contact in attempt 1. A producer will end the attempt.")
    assert "No producer is alive to continue it" in said
    sweep(DatabaseBroker(), now)
    assert explanation(operator, until(row, "failed")).startswith(
        "Attempt 1 failed: Crashed: Its consumer stopped renewing the lease: the process or its machine died"
    )


def test_cancelled_while_it_ran(consumer: Any, operator: Client) -> None:
    row = until(waiting_execution("tests.mark", params={"seconds": 600}), "running")
    operator.post(page_of(row, "cancel"))
    assert explanation(operator, until(row, "cancelled")) == "Cancelled by operator."
    assert "attempt 1 cancelled" in text_of(operator, page_of(row))


def test_cancelled_while_it_waited(operator: Client) -> None:
    row = run_now(SchedulerFactory(rare=True), DatabaseBroker())
    operator.post(page_of(row, "cancel"))
    assert explanation(operator, until(row, "cancelled")) == "Cancelled by operator. It never started."


def test_its_handler_is_missing(consumer: Any, operator: Client) -> None:
    Worker.objects.create(name="gone.worker")
    row = waiting_execution("gone.worker", max_retries=0)
    wait_for(lambda: SchedulerExecution.objects.filter(pk=row.pk, deferred_at__isnull=False), "it is put off")
    said = explanation(operator, until(row, "queued"))
    assert said.startswith("No consumer that is alive knows the worker 'gone.worker'. It waits until ")
    assert "offered to the consumers again" in said
    SchedulerExecution.objects.filter(pk=row.pk).update(deferred_at=row.deferred_at - timedelta(seconds=61))
    until(row, "failed")
    said = explanation(operator, row)
    assert "gone.worker" in said
    assert "registered" in said


def test_its_parameters_are_invalid(consumer: Any, operator: Client) -> None:
    row = until(waiting_execution("tests.typed", params={"since_days": 900}), "failed")
    said = explanation(operator, row)
    assert "since_days: must be at most 90" in said
    assert "The error says that a retry would not help." in said


# --- an operator discarded the execution ------------------------------------------------------------


def test_discarded(consumer: Any, operator: Client) -> None:
    row = until(waiting_execution("tests.never_again"), "failed")
    assert "NonRetryableError: the account is closed. The error says that a retry would not help." in explanation(
        operator, row
    )
    operator.post(
        reverse("admin:scheduling_failedexecution_changelist"),
        {
            "action": "discard_selected", "_selected_action": [row.pk], "select_across": "0", "post": "yes",
            "reason": "closed on purpose",
        },
    )  # fmt: skip
    assert explanation(operator, until(row, "discarded")) == "Discarded by operator: closed on purpose"
    assert "the account is closed" in text_of(operator, page_of(row))


def test_a_producer_that_is_alive_is_not_called_dead(
    unpublished: SchedulerExecution, operator: Client, settings: Any
) -> None:
    del settings.BROKER_URL
    assert Process.objects.filter(kind="producer", stopped_at=None).count() == 1
    said = explanation(operator, unpublished)
    for word in ("died", "stopped", "cannot be used", "No producer"):
        assert word not in said
