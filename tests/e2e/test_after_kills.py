"""A schedule waits for another one. The consumer is killed between the success and the start of what waits for it."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone as clock

from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def test_a_kill_after_the_success_loses_no_wait(commands: Commands, tmp_path: Path, broker_url: str) -> None:
    flag = tmp_path / "killed"
    params = {"directory": str(tmp_path)}
    first = SchedulerFactory(handler="tests.mark", rare=True, params=params)
    second = SchedulerFactory(handler="tests.mark", rare=True, params=params, after=first)
    environment = {
        "BROKER_URL": broker_url, "CRON_LEASE_SECONDS": "3", "EXTRA_APPS": "tests.apps.sample,tests.apps.killer",
        "KILL_FLAG": str(flag),
    }  # fmt: skip
    producer = commands.start("run_scheduler", **environment)
    commands.ready(producer)
    instant = clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1)
    Scheduler.objects.filter(pk__in=[first.pk, second.pk]).update(next_run_at=instant)
    rows = SchedulerExecution.objects
    waits = rows.filter(scheduler=second, state="blocked", reason__contains="waits to start as execution")
    wait_for(waits.exists, "the second one waits for the first one")
    doomed = commands.start("run_worker", **environment, KILL_AT="predecessor succeeded")
    wait_for(flag.exists, "the consumer was killed")
    assert doomed.wait(10) == -signal.SIGKILL
    assert (rows.get(scheduler=first).state, rows.get(scheduler=second).attempt) == ("succeeded", 0)
    commands.start("run_worker", **environment)
    wait_for(rows.filter(scheduler=second, state="succeeded").exists, "the second one has run")
    assert {path.name: path.read_text().split()[:2] for path in tmp_path.glob("[0-9]*.txt")} == {
        f"{row.pk}.txt": ["start", "1"] for row in rows.all()
    }
    before, after = rows.get(scheduler=first), rows.get(scheduler=second)
    assert before.finished_at is not None
    assert after.started_at is not None
    assert before.finished_at <= after.started_at
