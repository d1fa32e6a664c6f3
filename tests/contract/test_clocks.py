"""Producers and consumers whose host has a wrong clock work beside healthy ones.

The database server's clock decides. No occurrence is early, none is skipped, and no healthy run is ended.

`make clocks` runs the test for ten minutes instead of half a minute.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.models import Attempt, Process, Scheduler, SchedulerExecution
from tests.contract.server import Server, require
from tests.factories import SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SHIFTED = Path(__file__).parent / "shifted_clock"
SECONDS = float(os.environ.get("TEST_CLOCK_SECONDS", "30"))
# Shorter than the wrong clocks are wrong, and longer than a loaded host may delay a heartbeat.
LEASE = {"CRON_LEASE_SECONDS": "20"}
ALLOWANCE = timedelta(seconds=5)


@pytest.fixture(params=["database", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def transport(request: pytest.FixtureRequest, commands: Commands) -> Iterator[None]:
    """Let all processes use the database transport, or RabbitMQ."""
    if connection.vendor == "sqlite":
        pytest.skip("with SQLite, all processes share the clock of one host")
    if request.param == "database":
        yield
        return
    require()
    server = Server()
    commands.environment["BROKER_URL"] = server.url()
    yield
    commands.end()
    server.close()


def shifted(commands: Commands, command: str, seconds: int) -> subprocess.Popen[bytes]:
    return commands.start(command, SHIFT_SECONDS=str(seconds), PYTHONPATH=str(SHIFTED), **LEASE)


def instants_of(row: Scheduler) -> set[datetime]:
    return set(SchedulerExecution.objects.filter(scheduler=row).values_list("scheduled_at", flat=True))


@pytest.mark.usefixtures("transport")
def test_wrong_clocks_hurt_no_run(commands: Commands, tmp_path: Path) -> None:
    healthy = [commands.start("run_scheduler", **LEASE), commands.start("run_worker", "--concurrency", "4", **LEASE)]
    commands.ready(*healthy)
    begin = clock.now()
    minutely = [SchedulerFactory(schedule="* * * * *") for _number in range(3)]
    hourly = SchedulerFactory(schedule=f"{(begin.minute + 40) % 60} * * * *")
    long = SchedulerFactory(
        once=True, date_time=begin + timedelta(seconds=1), handler="tests.mark",
        params={"directory": str(tmp_path), "seconds": min(SECONDS, 590)},
    )  # fmt: skip
    wait_for(
        lambda: SchedulerExecution.objects.filter(scheduler=long, state="running").exists(), "the long run started"
    )
    wrong = {}
    for seconds in (6 * 3600, -6 * 3600):
        wrong[shifted(commands, "run_scheduler", seconds)] = seconds
    for seconds in (60, -60):
        wrong[shifted(commands, "run_worker", seconds)] = seconds
    commands.ready(*wrong)
    once = [
        SchedulerFactory(once=True, date_time=clock.now() + timedelta(seconds=number * SECONDS / 20))
        for number in range(1, 20)
    ]
    time.sleep(SECONDS)
    wait_for(
        lambda: SchedulerExecution.objects.filter(scheduler__in=[*once, long], state="succeeded").count() == 20,
        "all runs ended",
    )
    for process, seconds in wrong.items():
        assert "nothing is claimed, started or recovered here" in commands.log(process)
        row = Process.objects.get(pid=process.pid)
        assert abs(row.clock_ahead - seconds) < 40  # a loaded host sets the wrong clock a moment late
        assert abs((clock.now() - row.heartbeat_at).total_seconds()) < 40  # the heartbeat is dated by the server
    assert not Attempt.objects.exclude(outcome="succeeded").exists()
    ended = SchedulerExecution.objects.filter(state="succeeded")
    assert {execution.attempt for execution in ended} == {1}
    assert {execution.consumer for execution in ended} == {Process.objects.get(pid=healthy[1].pid).container_id}
    # Two processes know the server's time with different delays: the duration of a query on a loaded host.
    early = [(row.scheduled_at, row.started_at) for row in ended if row.started_at < row.scheduled_at - ALLOWANCE]
    assert early == []
    assert not SchedulerExecution.objects.filter(state="skipped").exists()
    first, end = begin.replace(second=0, microsecond=0), clock.now()
    minutes = {first + timedelta(minutes=number) for number in range(1, int((end - first).total_seconds() // 60) + 1)}
    for row in minutely:
        # The row may be a moment younger than `begin`, and its first minute may be over when it is saved.
        wanted = {minute for minute in minutes if minute > row.created_at + timedelta(seconds=1)}
        wait_for(lambda row=row, wanted=wanted: instants_of(row) >= wanted, "every minute was claimed")
        assert instants_of(row) <= minutes | {max(minutes, default=first) + timedelta(minutes=1)}
    assert SchedulerExecution.objects.filter(scheduler=hourly).count() <= 1
    hourly = Scheduler.objects.get(pk=hourly.pk)
    assert hourly.next_run_at is not None
    assert hourly.next_run_at < end + timedelta(minutes=61)
