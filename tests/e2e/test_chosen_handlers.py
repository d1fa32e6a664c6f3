"""Consumers that run only some handlers, as processes.

The full volume: `TEST_CHOSEN_RUNS=1000`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.api import Asked, run, run_many, wait
from scheduling.execution.own_broker import close_own_broker
from scheduling.handlers import registry
from scheduling.handlers.registry import worker
from scheduling.models import Attempt, Process, SchedulerExecution
from tests.factories import WorkerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

RUNS = int(os.environ.get("TEST_CHOSEN_RUNS", "60"))
OWN = "tests.in_own_queue"


@pytest.fixture
def transport(broker_url: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Provide the URL of the transport. This process uses it, too, and knows the worker with its own queue."""
    settings.BROKER_URL = broker_url
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
    worker(OWN, queue="own")(lambda params, run: None)
    WorkerFactory(name=OWN)
    yield broker_url
    close_own_broker()


def start(commands: Commands, transport: str, *options: str) -> Any:
    return commands.start("run_worker", *options, BROKER_URL=transport, TEST_OWN_QUEUE="1")


def test_each_run_is_on_a_consumer_that_has_chosen_it(commands: Commands, transport: str) -> None:
    other = OWN if transport != "database://" else "tests.mark"
    queues = {OWN: "own", "tests.mark": "main"}
    options = {
        f"--only {other}": ("--queue", queues[other], "--only", other, "--concurrency", "2"),
        f"--except {other}": ("--queue", "main", "--except", other, "--concurrency", "2"),
    }
    workers = [start(commands, transport, *each) for each in options.values()]
    commands.ready(*workers)
    asked = [Asked((other, "tests.noop")[number % 2], {}) for number in range(RUNS)]
    made = [submitted.id for submitted in run_many(asked)]
    assert {wait(pk, 120).state for pk in made} == {"succeeded"}
    wait_for(lambda: Attempt.objects.filter(execution__in=made).count() == RUNS, "the attempts are recorded")
    consumers = {row.container_id: row.info["handlers"] for row in Process.objects.filter(kind="consumer")}
    assert set(consumers.values()) == set(options)
    found = SchedulerExecution.objects.filter(pk__in=made).values_list("target_name", "consumer")
    assert {(name, consumers[consumer]) for name, consumer in found} == {
        (other, f"--only {other}"), ("tests.noop", f"--except {other}"),
    }  # fmt: skip
    assert [commands.stop(process) for process in workers] == [0, 0]


def test_a_run_in_the_queue_of_other_handlers_waits_for_another_consumer(commands: Commands, transport: str) -> None:
    producer = commands.start("run_scheduler", BROKER_URL=transport)  # it publishes again what was put off
    commands.ready(producer, start(commands, transport, "--except", OWN))
    row = SchedulerExecution.objects.get(pk=run(OWN, queue="main").id)
    behind = run("tests.noop").id
    assert wait(behind, 60).state == "succeeded"
    if transport != "database://":
        wait_for(lambda: "was started with --except" in SchedulerExecution.objects.get(pk=row.pk).reason, "its reason")
    commands.ready(start(commands, transport))
    assert wait(row.pk, 60).state == "succeeded"
    assert Attempt.objects.filter(execution=row.pk).count() == 1
