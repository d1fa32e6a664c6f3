"""The tests kill producers, consumers and children.

No execution is lost. A further attempt starts only after an attempt that crashed or was interrupted.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone as clock

from scheduling.models import Attempt, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

OVER = ("succeeded", "failed", "skipped", "cancelled")


def waiting() -> int:
    return SchedulerExecution.objects.exclude(state__in=OVER).count()


def check_attempts(directory: Path, execution: SchedulerExecution) -> None:
    """Check that the execution succeeded once, that no attempt number is missing, and that no attempt started twice."""
    attempts = list(Attempt.objects.filter(execution=execution))
    assert [attempt.number for attempt in attempts] == list(range(1, execution.attempt + 1))
    assert [attempt.outcome for attempt in attempts].count("succeeded") == 1
    assert attempts[-1].outcome == "succeeded"
    assert {attempt.outcome for attempt in attempts[:-1]} <= {"crashed", "interrupted"}
    starts = Counter(line.split()[1] for line in marks(directory, execution.pk) if line.startswith("start"))
    assert set(starts.values()) == {1}, starts


def test_due_schedules_run_although_producers_and_consumers_are_killed(commands: Commands, tmp_path: Path) -> None:
    instant = clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1)
    rows = [
        SchedulerFactory(
            handler="tests.mark",
            schedule="0 0 1 1 *",
            params={"directory": str(tmp_path), "seconds": 0.05},
            max_retries=19,
            retry_delay_ms=1000,
        )
        for _ in range(60)
    ]
    pick = random.Random(4)
    environment = {"CRON_LEASE_SECONDS": "3"}
    processes = [commands.start(name, **environment) for name in ("run_scheduler",) * 2 + ("run_worker",) * 2]
    commands.ready(*processes)
    for row in rows:
        due(row, instant)
    for _ in range(6):
        target = SchedulerExecution.objects.filter(state="succeeded").count() + 5
        wait_for(
            lambda target=target: (
                SchedulerExecution.objects.filter(state="succeeded").count() >= target or not waiting()
            ),
            "some more are done",
        )
        index = pick.randrange(4)
        commands.stop(processes[index], signal.SIGKILL)
        processes[index] = commands.start("run_scheduler" if index < 2 else "run_worker", **environment)
    wait_for(lambda: SchedulerExecution.objects.count() == 60 and not waiting(), "everything has ended")
    executions = list(SchedulerExecution.objects.all())
    assert len({(execution.scheduler_id, execution.execution_key) for execution in executions}) == 60
    for execution in executions:
        assert execution.state == "succeeded"
        check_attempts(tmp_path, execution)


def test_children_killed_at_random(commands: Commands, tmp_path: Path) -> None:
    row = SchedulerFactory(
        rare=True,
        handler="tests.mark",
        params={"directory": str(tmp_path), "seconds": 0.2},
        max_retries=19,
        retry_delay_ms=1000,
    )
    executions = ManualExecutionFactory.bulk(30, scheduler=row)
    worker = commands.start("run_worker", "--concurrency", "3")
    pick = random.Random(5)
    for _ in range(5):
        victim = wait_for(
            lambda: list(SchedulerExecution.objects.filter(state="running").values_list("pk", flat=True)), "some run"
        )
        lines = wait_for(lambda victim=victim: marks(tmp_path, victim[0]), "its start is in the file")
        try:
            os.kill(int(pick.choice(lines).split()[2]), signal.SIGKILL)
        except ProcessLookupError:
            continue
    wait_for(lambda: not waiting(), "everything has ended")
    for execution in executions:
        execution.refresh_from_db()
        check_attempts(tmp_path, execution)
    assert worker.poll() is None


def test_a_producer_killed_during_a_claim_loses_nothing(commands: Commands) -> None:
    """A claim on the database transport is one transaction. After a kill during the claim, the schedule stays due."""
    instant = clock.now().replace(second=0, microsecond=0)
    for _ in range(300):
        due(SchedulerFactory(schedule="0 0 1 1 *"), instant)
    for _ in range(3):
        producer = commands.start("run_scheduler")
        commands.ready(producer)
        commands.stop(producer, signal.SIGKILL)
    producer = commands.start("run_scheduler")
    wait_for(lambda: SchedulerExecution.objects.count() == 300, "all rows exist")
    assert set(SchedulerExecution.objects.values_list("state", flat=True)) == {"queued"}
    assert commands.stop(producer) == 0
