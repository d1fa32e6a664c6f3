"""Pauses, as an operator's click writes them, and processes that keep to them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.api import Asked, run, run_many, wait
from scheduling.execution.own_broker import close_own_broker
from scheduling.models import Attempt, Pause, SchedulerExecution
from tests.factories import PauseFactory, WorkerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

RUNS = int(os.environ.get("TEST_PAUSED_RUNS", "20"))


@pytest.fixture
def transport(broker_url: str, settings: Any) -> Iterator[str]:
    """Provide the URL of the transport. This process uses it, too."""
    settings.BROKER_URL = broker_url
    for name in ("tests.noop", "tests.mark"):
        WorkerFactory(name=name)
    yield broker_url
    close_own_broker()


def waits(pk: int) -> bool:
    return "is paused by ann" in SchedulerExecution.objects.get(pk=pk).reason


def waiting_run(handler: str) -> int:
    """Ask for runs until one waits: consumers read the pauses once a second. Returns its id."""

    def asked() -> int | None:
        pk = run(handler, {}).id
        wait_for(lambda: waits(pk) or SchedulerExecution.objects.get(pk=pk).state == "succeeded", "it waits or is over")
        return pk if waits(pk) else None

    return wait_for(asked, "the pause is known")


def test_paused_runs_wait_and_others_run_and_each_runs_once_after_the_pause(commands: Commands, transport: str) -> None:
    commands.ready(
        commands.start("run_scheduler", BROKER_URL=transport),
        *(commands.start("run_worker", "--concurrency", "2", BROKER_URL=transport) for _ in range(2)),
    )
    PauseFactory(name="tests.noop")
    paused = [waiting_run("tests.noop"), *(each.id for each in run_many([Asked("tests.noop")] * RUNS))]
    assert wait(run("tests.mark", {}).id, 60).state == "succeeded"
    wait_for(lambda: all(map(waits, paused)), "each says why it waits")
    assert not Attempt.objects.filter(execution__in=paused).exists()

    PauseFactory(of_site=True)
    Pause.objects.filter(scope="handler").update(ends_at=clock.now())
    frozen = waiting_run("tests.mark")
    Pause.objects.update(ends_at=clock.now())
    assert {wait(pk, 120).state for pk in [*paused, frozen]} == {"succeeded"}
    wait_for(lambda: Attempt.objects.filter(execution__in=paused).count() == len(paused), "each ran once")
