"""Children and consumers are killed while batches run. Each run of a batch is recovered by itself, and none is lost.

The full volume: `TEST_BATCH_KILLS=50 TEST_BATCH_RUNS=500`.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone as clock

from scheduling.models import Attempt, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("TEST_BATCH_KILLS", "6"))
RUNS = int(os.environ.get("TEST_BATCH_RUNS", "60"))
SEED = int(os.environ.get("TEST_SEED", "20261125"))


def lines(directory: Path, word: str) -> list[tuple[int, int]]:
    """The executions and attempts of all lines with this word, which calls have written."""
    found = [line.split() for path in directory.glob("batch-*.txt") for line in path.read_text().splitlines()]
    return [(int(pk), int(number)) for own, pk, number in found if own == word]


def test_batches_whose_child_or_consumer_is_killed(commands: Commands, broker_url: str, tmp_path: Path) -> None:
    environment = {"CRON_LEASE_SECONDS": "5", "BROKER_URL": broker_url}
    row = SchedulerFactory(rare=True, handler="tests.batch_mark", params={"directory": str(tmp_path), "seconds": 0.3})
    embedded = broker_url.startswith("database:")
    state = {"state": "queued"} if embedded else {"state": "claimed", "published_at": None}
    past = clock.now() - timedelta(seconds=30)
    executions = ManualExecutionFactory.bulk(RUNS, scheduler=row, params=row.params, wake_at=past, **state)
    pick = random.Random(SEED)
    producer = commands.start("run_scheduler", **environment)
    consumers = [commands.start("run_worker", **environment) for _ in range(2)]
    commands.ready(producer, *consumers)
    running = SchedulerExecution.objects.filter(state="running", pid__isnull=False)
    for number in range(KILLS):
        done = SchedulerExecution.objects.filter(state="succeeded").count()
        wait_for(lambda done=done: running.exists() or not waiting() or done == RUNS, "a batch runs")
        if number % 2:
            index = pick.randrange(2)
            commands.stop(consumers[index], signal.SIGKILL)
            consumers[index] = commands.start("run_worker", **environment)
        elif (pid := running.values_list("pid", flat=True).first()) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not waiting(), "everything has ended", 240)
    assert set(SchedulerExecution.objects.values_list("state", flat=True)) == {"succeeded"}
    starts, ends = Counter(lines(tmp_path, "start")), Counter(lines(tmp_path, "end"))
    assert set(starts.values()) == {1}, "each attempt is called once"
    assert {pk for pk, _number in ends} == {execution.pk for execution in executions}
    for execution in executions:
        execution.refresh_from_db()
        attempts = list(Attempt.objects.filter(execution=execution).order_by("number"))
        assert [attempt.number for attempt in attempts] == list(range(1, execution.attempt + 1))
        assert [attempt.outcome for attempt in attempts[:-1]] == ["crashed"] * (execution.attempt - 1)
        assert attempts[-1].result == str(execution.pk)
    assert Attempt.objects.filter(outcome="crashed").exists()
    sizes = Attempt.objects.filter(outcome="succeeded").values_list("batch_size", flat=True)
    assert max(size or 0 for size in sizes) == 5, "full batches, with one slot"


def waiting() -> bool:
    """Whether an execution is not over."""
    return SchedulerExecution.objects.exclude(state__in=("succeeded", "failed", "cancelled")).exists()
