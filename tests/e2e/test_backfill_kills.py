"""The test kills producers while they make the runs of a backfill. Each instant runs exactly once."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from scheduling.models import Backfill, SchedulerExecution
from tests.execution.backfills import MONDAY, ask, dry_run, made
from tests.factories import SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SCHEDULES = int(os.environ.get("TEST_BACKFILL_SCHEDULES", "2"))
DAYS = int(os.environ.get("TEST_BACKFILL_DAYS", "10"))


def test_each_instant_is_made_once_although_producers_are_killed(commands: Commands) -> None:
    rows = [SchedulerFactory(schedule=f"{number % 60} */2 * * *") for number in range(SCHEDULES)]
    wanted = {row.pk: list(dry_run(row, days=DAYS, since=MONDAY).instants) for row in rows}
    ask(*rows, days=DAYS, per_minute=600)

    def count() -> int:
        return SchedulerExecution.objects.filter(trigger="backfill").count()

    def is_over() -> bool:
        return not Backfill.objects.filter(state="running").exists()

    producers = [commands.start("run_scheduler"), commands.start("run_scheduler")]
    wait_for(count, "the first runs are made")
    for producer in producers:
        commands.stop(producer, signal.SIGKILL)
    assert not is_over()
    commands.start("run_scheduler")
    wait_for(is_over, "another producer makes the rest")
    ask(*rows, days=DAYS)
    for row in rows:
        assert sorted(made(row)) == wanted[row.pk]
    assert max(Counter(SchedulerExecution.objects.values_list("scheduler", "execution_key")).values()) == 1
    done = Backfill.objects.values_list("state", "created", "existing", "total")
    assert all((state, created + existing) == ("done", total) for state, created, existing, total in done)
