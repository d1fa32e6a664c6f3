"""Runs of limited handlers on several consumers: no limit is exceeded, no place is lost, and no key is starved.

The full volume: `TEST_LIMITED_RUNS=5000 TEST_LIMITED_KEYS=50 TEST_LIMITED_KILLS=20`.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduling.api import Asked, run_many
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.own_broker import close_own_broker
from scheduling.models import LimitPlace, SchedulerExecution
from tests.factories import WorkerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

RUNS = int(os.environ.get("TEST_LIMITED_RUNS", "40"))
KEYS = int(os.environ.get("TEST_LIMITED_KEYS", "5"))
KILLS = int(os.environ.get("TEST_LIMITED_KILLS", "1"))
SEED = int(os.environ.get("TEST_SEED", "20261124"))


@pytest.fixture
def transport(broker_url: str, settings: Any) -> Iterator[str]:
    """Provide the URL of the transport. This process uses it, too."""
    settings.BROKER_URL = broker_url
    for name in ("tests.one_of_each_key", "tests.two_at_once", "tests.three_in_two_seconds"):
        WorkerFactory(name=name)
    yield broker_url
    close_own_broker()


def notes(directory: Path) -> list[list[str]]:
    """The notes of the runs, in the order of their times."""
    path = directory / "notes.txt"
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    return sorted(lines, key=lambda words: float(words[5]))


def most_at_once(lines: list[list[str]]) -> Counter[str]:
    """How many runs of each region there were at once, at most. An attempt that was killed ends with its next begin."""
    running: dict[str, set[str]] = {}
    most: Counter[str] = Counter()
    for word, region, execution, *_rest in lines:
        own = running.setdefault(region, set())
        own.add(execution) if word == "begin" else own.discard(execution)
        most[region] = max(most[region], len(own))
    return most


def start(commands: Commands, broker_url: str, consumers: int) -> list[Any]:
    """Start a producer and consumers."""
    environment = {"BROKER_URL": broker_url, "CRON_LEASE_SECONDS": "5"}
    found = [commands.start("run_worker", "--concurrency", "3", **environment) for _ in range(consumers)]
    commands.ready(commands.start("run_scheduler", **environment), *found)
    return found


def all_over() -> bool:
    return not SchedulerExecution.objects.in_state(*OPEN_STATES).exists()


def test_each_key_has_one_run_at_once_and_all_runs_succeed(commands: Commands, transport: str, tmp_path: Path) -> None:
    print(f"seed {SEED}")  # noqa: T201 - shown if the test fails
    pick = random.Random(SEED)
    consumers = start(commands, transport, 2)
    asked = [
        Asked("tests.one_of_each_key", {"directory": str(tmp_path), "region": f"r{pick.randrange(KEYS)}"})
        for _ in range(RUNS)
    ]
    keys = [submitted.id for submitted in run_many(asked)]
    for number in range(KILLS):
        done = (number + 1) * RUNS // (KILLS + 2)
        wait_for(lambda done=done: len(notes(tmp_path)) >= done, "some have run", 200)  # type: ignore[misc]
        commands.stop(consumers.pop(0), signal.SIGKILL)
        environment = {"BROKER_URL": transport, "CRON_LEASE_SECONDS": "5"}
        consumers.append(commands.start("run_worker", "--concurrency", "3", **environment))
    wait_for(all_over, "all has ended", 120 + RUNS)
    assert {row.state for row in SchedulerExecution.objects.filter(pk__in=keys)} == {"succeeded"}
    killed = {row.pk for row in SchedulerExecution.objects.filter(pk__in=keys, attempt__gt=1)}
    lines = [words for words in notes(tmp_path) if int(words[2]) not in killed]
    assert set(most_at_once(lines).values()) == {1}
    wait_for(lambda: not LimitPlace.objects.exists(), "no place is left")


def test_a_handler_runs_at_most_twice_at_once(commands: Commands, transport: str, tmp_path: Path) -> None:
    start(commands, transport, 2)
    asked = [Asked("tests.two_at_once", {"directory": str(tmp_path), "seconds": 0.2})] * (RUNS // 2)
    run_many(asked)
    wait_for(
        lambda: SchedulerExecution.objects.filter(reason__startswith="It waits for a place: 2 of 2").exists(), "why"
    )
    wait_for(all_over, "all has ended", 120 + RUNS)
    assert most_at_once(notes(tmp_path)) == {"eu": 2}


def test_no_span_has_more_starts_than_the_limit(commands: Commands, transport: str, tmp_path: Path) -> None:
    start(commands, transport, 2)
    run_many([Asked("tests.three_in_two_seconds", {"directory": str(tmp_path), "seconds": 0})] * 8)
    wait_for(all_over, "all has ended", 120)
    started = sorted(SchedulerExecution.objects.values_list("started_at", flat=True))
    # A place is given by the clock of the database server, a moment before the start.
    spans = [(later - earlier).total_seconds() for earlier, later in zip(started, started[3:], strict=False)]
    assert min(spans) > 1.5
