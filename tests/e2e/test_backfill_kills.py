"""The test kills producers while they make the runs of a backfill, and asks again. Each instant runs exactly once.

TEST_BACKFILL_SCHEDULES=100 TEST_BACKFILL_DAYS=31 is the full volume: a month of 100 schedules.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from scheduling.models import Backfill, SchedulerExecution
from tests.execution.backfills import FAST, MONDAY, ask, dry_run, made
from tests.factories import SchedulerFactory
from tests.hostile.fuzz import report
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SCHEDULES = int(os.environ.get("TEST_BACKFILL_SCHEDULES", "2"))
DAYS = int(os.environ.get("TEST_BACKFILL_DAYS", "10"))
KILLED_AT = (0.01, 0.3, 0.6) if SCHEDULES > 10 else (0.01,)
"""The parts of the runs after which both producers are killed."""
PER_MINUTE = min(600, 18_000 // SCHEDULES)
"""The rate of the first request. Two producers can keep it, so it leaves something for the second request."""


def test_each_instant_is_made_once_although_producers_are_killed(commands: Commands) -> None:
    rows = [SchedulerFactory(schedule=f"{number % 60} */2 * * *") for number in range(SCHEDULES)]
    wanted = {row.pk: list(dry_run(row, days=DAYS, since=MONDAY).instants) for row in rows}
    total = sum(map(len, wanted.values()))
    # A producer makes some hundred runs in a second.
    seconds = 90 + total / 30
    ask(*rows, days=DAYS, per_minute=PER_MINUTE)

    def count() -> int:
        return SchedulerExecution.objects.filter(trigger="backfill").count()

    def is_over() -> bool:
        return not Backfill.objects.filter(state="running").exists()

    kills = list[int]()
    for part in KILLED_AT:
        producers = [commands.start("run_scheduler"), commands.start("run_scheduler")]
        wait_for(lambda part=part: count() > part * total, "runs are made", seconds)  # type: ignore[misc]
        for producer in producers:
            commands.stop(producer, signal.SIGKILL)
        assert not is_over()
        kills.append(count())
    ask(*rows, days=DAYS, per_minute=FAST)
    commands.start("run_scheduler")
    wait_for(is_over, "another producer makes the rest", seconds)
    assert Backfill.objects.filter(created__gt=0).count() > SCHEDULES or SCHEDULES < 10
    ask(*rows, days=DAYS, per_minute=FAST)
    wait_for(is_over, "the third request finds everything on record", seconds)
    for row in rows:
        assert sorted(made(row)) == wanted[row.pk]
    assert max(Counter(SchedulerExecution.objects.values_list("scheduler", "execution_key")).values()) == 1
    done = Backfill.objects.order_by("pk").values_list("state", "created", "existing", "total")
    assert all((state, created + existing) == ("done", total) for state, created, existing, total in done)
    assert sum(created for _state, created, _existing, _total in done) == total == count()
    assert not any(created for _state, created, _existing, _total in list(done)[-SCHEDULES:])
    report("backfill", runs=total, made_when_killed=kills)
