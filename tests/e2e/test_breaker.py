"""What a handler needs is down, and comes back: processes on both transports keep to its circuit breaker.

The full volume: `TEST_BREAKER_INTERVALS=30 TEST_BREAKER_RUNS=300`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduling.api import Asked, run_many
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.execution.own_broker import close_own_broker
from scheduling.models import Attempt, Breaker, SchedulerExecution
from tests.apps.sample.depending import PACE, PROBE_EVERY
from tests.factories import WorkerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

INTERVALS = int(os.environ.get("TEST_BREAKER_INTERVALS", "2"))
RUNS = int(os.environ.get("TEST_BREAKER_RUNS", "20"))


@pytest.fixture
def transport(broker_url: str, settings: Any) -> Iterator[str]:
    """Provide the URL of the transport. This process uses it, too."""
    settings.BROKER_URL = broker_url
    WorkerFactory(name="tests.depending")
    yield broker_url
    close_own_broker()


def breaker() -> Breaker | None:
    return Breaker.objects.filter(name="tests.depending").first()


def is_open() -> Breaker | None:
    found = breaker()
    return found if found is not None and found.state == "open" else None


def test_what_is_down_is_left_alone_and_every_run_succeeds_afterwards(
    commands: Commands, transport: str, tmp_path: Path
) -> None:
    commands.ready(
        commands.start("run_scheduler", BROKER_URL=transport),
        *(commands.start("run_worker", "--concurrency", "2", BROKER_URL=transport) for _ in range(2)),
    )

    def calls(since: float) -> list[float]:
        lines = (tmp_path / "calls.txt").read_text().splitlines()
        return sorted(at for at in (float(line.split()[0]) for line in lines) if at >= since)

    (tmp_path / "down").touch()
    asked = [Asked("tests.depending", {"directory": str(tmp_path)})] * 5
    keys = [submitted.id for submitted in run_many(asked)]
    wait_for(is_open, "the breaker opens")
    # What had started before ends, and the runs that come now all wait.
    wait_for(lambda: not SchedulerExecution.objects.in_state(State.RUNNING).exists(), "nothing runs")
    keys += [submitted.id for submitted in run_many(asked[:1] * RUNS)]
    opened = time.time()
    wait_for(lambda: len(calls(opened)) >= INTERVALS, "probes are made", 60 + INTERVALS * PROBE_EVERY * 3)
    assert len(calls(opened)) <= (time.time() - opened) / PROBE_EVERY + 1
    assert is_open()
    assert not SchedulerExecution.objects.in_state(State.FAILED).exists()
    waiting = SchedulerExecution.objects.filter(pk__in=keys, reason__contains="circuit breaker")
    assert waiting.count() >= RUNS - 1

    (tmp_path / "down").unlink()
    back = time.time()
    wait_for(lambda: not SchedulerExecution.objects.in_state(*OPEN_STATES).exists(), "all has ended", 120 + RUNS)
    wait_for(lambda: getattr(breaker(), "state", "") == "closed", "the breaker closes")
    rows = SchedulerExecution.objects.filter(pk__in=keys)
    assert {row.state for row in rows} == {"succeeded"}
    assert {row.attempts.filter(outcome="succeeded").count() for row in rows} == {1}
    probes = Attempt.objects.filter(outcome="failed_probe")
    assert probes.count() >= INTERVALS - 1
    assert {probe.error_message for probe in probes} == {"the depot does not answer"}
    for row in rows:
        assert row.retry_base == row.attempts.filter(outcome="failed_probe").count()
    at = calls(back)
    assert all(number <= 1 + (now - at[0]) * PACE for number, now in enumerate(at[1:], 1))
