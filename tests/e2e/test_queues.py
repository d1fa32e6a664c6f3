"""Consumers of different queues, as processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scheduling.api import Asked, run, run_many, wait
from scheduling.core.queues import Priority, queue_of, queue_problem
from scheduling.execution.own_broker import close_own_broker
from scheduling.models import Attempt, Process, SchedulerExecution
from tests.core.queue_names import HOSTILE
from tests.support import Commands, wait_for

RUNS = 60


@pytest.fixture
def transport(broker_url: str, settings: Any) -> Iterator[str]:
    """Provide the URL of the transport that this process uses, too."""
    settings.BROKER_URL = broker_url
    yield broker_url
    close_own_broker()


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_each_run_is_on_a_consumer_of_its_queue(commands: Commands, transport: str) -> None:
    serves = {"main,mail": ("main", "mail"), "reports": ("reports",)}
    workers = [
        commands.start("run_worker", "--queue", names, "--concurrency", "2", BROKER_URL=transport) for names in serves
    ]
    commands.ready(*workers)
    queues, priorities = ("main", "mail", "reports"), [str(priority) for priority in Priority]
    asked = [
        Asked("tests.noop", queue=queues[number % 3], priority=priorities[number // 3 % 3]) for number in range(RUNS)
    ]
    made = [submitted.id for submitted in run_many(asked)]
    assert {wait(pk, 120).state for pk in made} == {"succeeded"}
    wait_for(lambda: Attempt.objects.filter(execution__in=made).count() == RUNS, "the attempts are recorded")
    consumers = {row.container_id: serves[row.queue] for row in Process.objects.filter(kind="consumer")}
    rows = SchedulerExecution.objects.filter(pk__in=made).values_list("queue", "consumer")
    assert [(queue, consumers[name]) for queue, name in rows if queue_of(queue) not in consumers[name]] == []
    assert len(set(consumers)) == 2
    assert [commands.stop(worker) for worker in workers] == [0, 0]


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_retries_in_the_immediate_queue_do_not_wait(commands: Commands, transport: str, tmp_path: Path) -> None:
    commands.ready(commands.start("run_worker", "--queue", "immediate", BROKER_URL=transport))
    mended = run("tests.fail_once", {"directory": str(tmp_path)}, queue="immediate").id
    given_up = run("tests.fail", queue="immediate").id
    assert (wait(mended, 60).state, wait(given_up, 60).state) == ("succeeded", "failed")
    attempts = Attempt.objects.filter(execution__in=(mended, given_up)).order_by("execution_id", "number")
    assert [(row.execution_id, row.number) for row in attempts] == [
        (mended, 1), (mended, 2), (given_up, 1), (given_up, 2), (given_up, 3),
    ]  # fmt: skip
    again = [row for row in attempts if row.retry_at is not None]
    assert [row.outcome for row in again] == ["failed"] * 3
    assert all(row.retry_at <= row.finished_at for row in again)


REFUSED = [name for name in HOSTILE if isinstance(name, str) and name != "a,b" and queue_problem(name.strip())]


@pytest.mark.any_database
@pytest.mark.django_db
@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_consumer_of_a_queue_that_cannot_exist_does_not_start(name: str) -> None:
    with pytest.raises(CommandError, match=r"--queue|--standalone"):
        call_command("run_worker", queue=name)


@pytest.mark.any_database
@pytest.mark.django_db
def test_a_consumer_has_at_most_a_hundred_queues() -> None:
    with pytest.raises(CommandError, match="at most 100"):
        call_command("run_worker", queue=",".join(f"q{number}" for number in range(101)))
