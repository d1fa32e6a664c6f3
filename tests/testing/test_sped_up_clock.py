"""Random scripts over a clock change leave the same rows under `travel` and with processes whose clock runs faster.

The clock of the processes is 600 times as fast as the real one, and ten times as fast while something is due. On a busy
machine, the processes may still be so late that they miss the time of an occurrence. Such a run says nothing, so it is
made again with a slower clock.

TEST_TRAVEL_SCRIPTS is the number of scripts, and TEST_TRAVEL_RATE the first speed of the clock. The seed is
TEST_FUZZ_SEED.
"""

from __future__ import annotations

import os
import random
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q

from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from scheduling.testing import travel
from tests.hostile.fuzz import choose_seed
from tests.support import Commands
from tests.testing.rows import facts_of, forget
from tests.testing.sped_up.clock import SpedUpClock, library
from tests.testing.sped_up.script import LATE, Script, do, end, make, random_script

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SCRIPTS = int(os.environ.get("TEST_TRAVEL_SCRIPTS", "1"))
RATE = int(os.environ.get("TEST_TRAVEL_RATE", "600"))
SLOWEST = 75
SLOW = 10
"""The speed of the clock while something is due."""

SCHEDULE = ("status", "schedule", "date_time", "timezone", "next_run_at", "plan_error", "planned_at")

LONGEST = timedelta(hours=8)
"""After this time, no retry waits any more."""


class Slipped(Exception):
    """The processes were so late that their rows say nothing."""


@pytest.mark.parametrize("number", range(SCRIPTS))
def test_processes_with_a_faster_clock_leave_the_same_rows(number: int, commands: Commands, tmp_path: Path) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the clock of a database server cannot run faster")
    seed = f"{choose_seed()} sped up {number}"
    script = random_script(random.Random(seed))
    rate, preloaded = RATE, library(tmp_path)
    while True:
        try:
            real = rows_of_processes(script, commands, rate, preloaded)
            break
        except Slipped as slipped:
            print(f"{seed}, {rate} times as fast: {slipped}")  # noqa: T201
            if rate <= SLOWEST:
                pytest.fail(f"This machine is too busy for a clock that is {rate} times as fast: {slipped}")
            rate //= 2
    simulated = rows_of_travel(script)
    for own, theirs in zip(simulated, real, strict=True):
        assert own == theirs, f"TEST_FUZZ_SEED={choose_seed()}, script {number}: {script}"
    assert sum(len(rows) for _schedule, rows in real) > len(script.planned), "the script has occurrences"


def rows_of_processes(script: Script, commands: Commands, rate: int, preloaded: Path) -> list[Any]:
    """The rows that a producer and a consumer make whose clock is `rate` times as fast.

    Raises:
        Slipped: something was done too late.
    """
    forget()
    with travel(script.begin):
        made = make(script)
    clock = SpedUpClock(script.begin, commands.directory, preloaded)
    # A lease is dated by the clock, and it is renewed each fifteen real seconds at most.
    commands.environment |= clock.environment | {"CRON_LEASE_SECONDS": "3600"}
    try:
        processes = [commands.start("run_scheduler"), commands.start("run_worker", "--concurrency", "2")]
        commands.ready(*processes)
        in_time(script.begin, clock.now())
        for deed in script.deeds:
            go_to(script.begin + deed.at, clock, rate)
            with travel(script.begin + deed.at):
                do(deed, made)
            in_time(script.begin + deed.at, clock.now())
        go_to(script.end, clock, rate)
        with travel(script.end):
            end(made)
        in_time(script.end, clock.now())
        while waiting().exists():
            go_on(clock, rate)
            assert clock.now() < script.end + LONGEST
        for process in processes:
            commands.stop(process)
    finally:
        commands.end()
    for row in SchedulerExecution.objects.all():
        started_in_time(row)
    return [compared(one) for one in made]


def rows_of_travel(script: Script) -> list[Any]:
    """The rows under `travel`."""
    forget()
    with travel(script.begin) as clock:
        made = make(script)
        for deed in script.deeds:
            clock.forward(to=script.begin + deed.at, raise_errors=False)
            do(deed, made)
        clock.forward(to=script.end, raise_errors=False)
        end(made)
        clock.forward(LONGEST, raise_errors=False)
        return [compared(one) for one in made]


def go_to(instant: datetime, clock: SpedUpClock, rate: int) -> None:
    """Wait until the processes see this time."""
    while clock.now() < instant:
        go_on(clock, rate)


def go_on(clock: SpedUpClock, rate: int) -> None:
    """Let the time go on for a moment; slowly while something is due, so that the processes are not late."""
    clock.speed_up(SLOW if is_busy(clock.now()) else rate)
    time.sleep(0.02)


def is_busy(now: datetime) -> bool:
    """Whether an execution runs, or an execution or a schedule is due."""
    schedules = Scheduler.objects.filter(next_run_at__lte=now)
    return schedules.exists() or waiting().filter(Q(wake_at__lte=now) | Q(state=State.RUNNING.value)).exists()


def waiting() -> Any:
    """The executions that are not over."""
    return SchedulerExecution.objects.filter(state__in=[str(state) for state in OPEN_STATES])


def in_time(due: datetime, found: datetime, what: object = "an action") -> None:
    """Check that what was due was done soon enough."""
    if found - due > LATE:
        raise Slipped(f"{what}, due at {due}, came at {found}")


def started_in_time(row: SchedulerExecution) -> None:
    """Check that an execution was claimed, and its attempts were started, soon after they were due."""
    due = row.scheduled_at
    if row.missed == 0:
        in_time(due, row.executed_at, row)
    for attempt in Attempt.objects.filter(execution=row.pk).order_by("number"):
        in_time(due, attempt.started_at, row)
        assert attempt.started_at >= due
        due = attempt.retry_at or due
    if row.state == State.FAILED:
        in_time(due, row.finished_at or due, row)


def compared(made: int | Scheduler) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A schedule and its executions, or one execution.

    Not compared: by how much a run begins after its time and how long it takes, which process ran it, ids, and the
    keys of runs that code has asked for.
    """
    if isinstance(made, int):
        return {}, [
            facts_of(row) | {"scheduled_at": row.scheduled_at} for row in SchedulerExecution.objects.filter(pk=made)
        ]
    row = Scheduler.objects.get(pk=made.pk)
    executions = SchedulerExecution.objects.filter(scheduler=row).order_by("scheduled_at", "pk")
    own = [{"key": one.execution_key, "scheduled_at": one.scheduled_at} | facts_of(one) for one in executions]
    return {name: getattr(row, name) for name in SCHEDULE}, own
