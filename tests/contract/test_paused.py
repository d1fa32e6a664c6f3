"""A process that is paused inside a transaction locks no row for longer than its lease.

The process gets SIGSTOP while its transaction is open, as if its machine sleeps. Another process does its work.
"""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.models import Attempt, SchedulerExecution
from tests.factories import SchedulerFactory, due
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

PRODUCER, CONSUMER = "run_scheduler", "run_worker"
ENVIRONMENT = {"CRON_LEASE_SECONDS": "3", "EXTRA_APPS": "tests.apps.sample,tests.apps.killer"}


@pytest.mark.parametrize(
    ("victim", "place", "outcomes"),
    [
        (PRODUCER, "rows inserted", ["succeeded"]),
        (CONSUMER, "start written", ["succeeded"]),
        (CONSUMER, "output written", ["crashed", "succeeded"]),
    ],
)
def test_another_process_does_the_work_of_a_process_that_is_paused(
    commands: Commands, tmp_path: Path, victim: str, place: str, outcomes: list[str]
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("with SQLite, a paused transaction locks the whole file; all processes share one host")
    flag = tmp_path / "paused"
    pause = {**ENVIRONMENT, "KILL_AT": place, "KILL_FLAG": str(flag), "KILL_SIGNAL": "SIGSTOP"}
    first = {name: commands.start(name, **(pause if name == victim else ENVIRONMENT)) for name in (PRODUCER, CONSUMER)}
    commands.ready(*first.values())
    row = SchedulerFactory(rare=True, handler="tests.chatter", params={"directory": str(tmp_path), "seconds": 2})
    due(row, clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1))
    wait_for(flag.exists, "the process is paused")
    commands.start(victim, **ENVIRONMENT)
    neighbour = SchedulerFactory(once=True, date_time=clock.now() + timedelta(seconds=1))
    for scheduler in (row, neighbour):
        ended = SchedulerExecution.objects.filter(scheduler=scheduler, state="succeeded")
        wait_for(ended.exists, "its work is done")
    first[victim].send_signal(signal.SIGCONT)
    wait_for(lambda: "trying again" in commands.log(first[victim]), "it has lost its connection")
    execution = SchedulerExecution.objects.get(scheduler=row)
    attempts = Attempt.objects.filter(execution=execution).order_by("number")
    assert list(attempts.values_list("outcome", flat=True)) == outcomes
    assert len([line for line in marks(tmp_path, execution.pk) if line.startswith("start")]) == len(outcomes)
    assert first[victim].poll() is None
