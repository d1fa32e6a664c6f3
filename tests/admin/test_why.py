"""The pages explain why an execution ran or did not run. Each test causes one situation and reads the explanation.

The processes are real and are killed by real signals. The tests replace only the clock.
"""

from __future__ import annotations

import re
import signal
import socket
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import unescape
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
from tests.admin.pages import page_of
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def broker_not_asked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete the broker's last answer from the cache. Without this, the pages would reuse the answer for 10 s."""
    monkeypatch.setattr(surroundings, "_broker_said", (0.0, ""))


@pytest.fixture
def consumer(commands: Commands) -> Any:
    """Provide a consumer that runs as a real process."""
    process = commands.start("run_worker", "--concurrency", "3")
    commands.ready(process)
    return process


@pytest.fixture
def later() -> Iterator[Any]:
    """Return a function that moves this process's clock forward. The clock continues from the new time."""
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
    response = client.get(address)
    assert response.status_code == 200
    body = response.content.decode().split('id="content-main"')[1].split("<footer")[0]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))


def lead(client: Client, row: SchedulerExecution) -> str:
    """Return the explanation below the state on the execution's page."""
    response = client.get(page_of(row))
    assert response.status_code == 200
    sentences: list[str] = response.context["why"]
    said = " ".join(sentences)
    assert said in text_of(client, page_of(row))
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


def one(handler: str, **columns: Any) -> SchedulerExecution:
    """Return an execution that waits for a consumer. The handler's retry policy applies to the execution."""
    params = columns.pop("params", {})
    row = ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, **columns), params=params)
    return row


# --- 1 to 3: nothing ran ----------------------------------------------------------------------------


def test_paused(operator: Client) -> None:
    row = SchedulerFactory(schedule="0 12 * * *")
    row.status = False
    row.save()
    claim_due(clock.now() + timedelta(days=2), embedded=True)
    assert not SchedulerExecution.objects.exists()
    said = text_of(operator, schedule_page(row))
    assert "It is switched off: these would be its runs if it were on." in said
    assert "Next run: none" in said


def test_paused_after_it_had_fallen_due(operator: Client) -> None:
    row = due(SchedulerFactory(rare=True), clock.now() - timedelta(seconds=2))
    row.status = False
    row.save()
    claim_due(clock.now(), embedded=True)
    skipped = SchedulerExecution.objects.get()
    assert skipped.state == "skipped"
    assert lead(operator, skipped) == ("It was switched off after it had fallen due and before a producer claimed it.")


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
    assert re.fullmatch(
        r"Missed 3 occurrences from .* 21:00 to .* 23:00 UTC: no producer was running\.", lead(operator, missed)
    ), lead(operator, missed)


# --- 4 and 5: claimed but not published -------------------------------------------------------------


@pytest.fixture
def closed() -> Iterator[str]:
    """Provide the URL of a broker that refuses connections. The port stays bound, so no process can listen on it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"amqp://guest:hush@127.0.0.1:{taken.getsockname()[1]}/"


@pytest.fixture
def unpublished(commands: Commands, settings: Any, closed: str) -> Any:
    """Provide an execution that a real producer claimed while the producer could not reach its broker."""
    settings.BROKER_URL = closed
    due(SchedulerFactory(rare=True), clock.now() - timedelta(seconds=1))
    commands.start("run_scheduler", BROKER_URL=closed)
    wait_for(SchedulerExecution.objects.filter(state="claimed").exists, "a claim")
    return SchedulerExecution.objects.order_by("pk")[0]


def test_the_broker_is_down(unpublished: SchedulerExecution, operator: Client, later: Any, closed: str) -> None:
    assert lead(operator, unpublished).startswith(f"It is claimed by {unpublished.container_id} and waits for the")
    later(seconds=11)
    said = lead(operator, unpublished)
    assert "The broker cannot be used: " in said
    assert closed.split("@")[1].rstrip("/") in said
    assert "It is published by itself once the broker is back." in said
    assert "hush" not in said
    assert "No producer is alive" not in said
    assert "No consumer of the queue “main” is alive" in said


def test_claimed_by_a_process_that_died(
    unpublished: SchedulerExecution, commands: Commands, operator: Client, later: Any
) -> None:
    (producer,) = commands.started
    commands.stop(producer, signal.SIGKILL)
    later(minutes=5)
    said = lead(operator, unpublished)
    assert f"The producer {unpublished.container_id} died before that: its last sign was " in said
    assert "No producer is alive to move it on: start one with manage.py run_scheduler." in said


def test_claimed_by_a_process_that_was_stopped(
    unpublished: SchedulerExecution, commands: Commands, operator: Client, later: Any
) -> None:
    (producer,) = commands.started
    commands.stop(producer)
    later(seconds=30)
    said = lead(operator, unpublished)
    assert f"The producer {unpublished.container_id} was stopped before that; another one publishes it." in said


# --- 6 to 11: an attempt ended ----------------------------------------------------------------------


def test_waiting_for_its_retry(consumer: Any, operator: Client) -> None:
    row = until(one("tests.fail", retry_delay_ms=60_000), "retrying")
    assert re.fullmatch(
        r"Attempt 1 did not succeed: RuntimeError: cannot reach the service, attempt 1\. "
        r"Retry 1 of 2\. It is due in (1 min|\d+ s)\.",
        lead(operator, row),
    ), lead(operator, row)
    assert "waits 1 min before the next attempt until in " in text_of(operator, page_of(row))


def test_timed_out(consumer: Any, operator: Client) -> None:
    row = until(one("tests.hang"), "failed")
    assert lead(operator, row).startswith(
        "Attempt 1 did not succeed: TimedOut: It ran longer than its time limit of 1 s and was ended."
    )
    assert "signal SIGKILL" in text_of(operator, page_of(row))  # the handler ignored SIGTERM


def test_killed(consumer: Any, operator: Client) -> None:
    row = until(one("tests.die", max_retries=0), "failed")
    assert lead(operator, row).startswith(
        "Attempt 1 did not succeed: Crashed: The child process was ended by signal 9 (KILL; often the kernel, out of"
    )


def test_killed_with_its_consumer(consumer: Any, commands: Commands, operator: Client, later: Any) -> None:
    row = until(one("tests.mark", params={"seconds": 600}, max_retries=0), "running")
    commands.stop(consumer, signal.SIGKILL)
    now = later(seconds=60)
    said = lead(operator, row)
    assert re.match(rf"Attempt 1 ran in {row.consumer}; its lease ended .* ago, and a producer will end it\.", said)
    assert "No producer is alive to move it on" in said
    sweep(DatabaseBroker(), now)
    assert lead(operator, until(row, "failed")).startswith(
        "Attempt 1 did not succeed: Crashed: Its consumer stopped renewing the lease: the process or its machine died"
    )


def test_cancelled_while_it_ran(consumer: Any, operator: Client) -> None:
    row = until(one("tests.mark", params={"seconds": 600}), "running")
    operator.post(page_of(row, "cancel"))
    assert lead(operator, until(row, "cancelled")) == "Cancelled by operator."
    assert "attempt 1 cancelled" in text_of(operator, page_of(row))


def test_cancelled_while_it_waited(operator: Client) -> None:
    row = run_now(SchedulerFactory(rare=True), DatabaseBroker())
    operator.post(page_of(row, "cancel"))
    assert lead(operator, until(row, "cancelled")) == "Cancelled by operator."
    assert "It never started." in text_of(operator, page_of(row))


def test_its_handler_is_missing(consumer: Any, operator: Client) -> None:
    Worker.objects.create(name="gone.worker")
    row = until(one("gone.worker", max_retries=0), "failed")
    said = lead(operator, row)
    assert "gone.worker" in said
    assert "registered" in said


def test_its_parameters_are_invalid(consumer: Any, operator: Client) -> None:
    row = until(one("tests.typed", params={"since_days": 900}), "failed")
    said = lead(operator, row)
    assert "since_days: Input should be less than or equal to 90" in said
    assert "The error says that a retry cannot help." in said


# --- 12: an operator cancelled the execution --------------------------------------------------------


def test_discarded(consumer: Any, operator: Client) -> None:
    row = until(one("tests.never_again"), "failed")
    assert "NonRetryableError: the account is closed. The error says that a retry cannot help." in lead(operator, row)
    operator.post(
        reverse("admin:scheduling_failedexecution_changelist"),
        {
            "action": "discard_selected", "_selected_action": [row.pk], "select_across": "0", "post": "yes",
            "reason": "closed on purpose",
        },
    )  # fmt: skip
    assert lead(operator, until(row, "discarded")) == "Discarded by operator: closed on purpose"
    assert "the account is closed" in text_of(operator, page_of(row))


def test_what_is_alive_is_not_blamed(unpublished: SchedulerExecution, operator: Client, settings: Any) -> None:
    del settings.BROKER_URL
    assert Process.objects.filter(kind="producer", stopped_at=None).count() == 1
    said = lead(operator, unpublished)
    for word in ("died", "stopped", "cannot be used", "No producer"):
        assert word not in said
