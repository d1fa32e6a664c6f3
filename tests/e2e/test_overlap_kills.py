"""Producers and consumers are killed while schedules that run alone fall due again and again.

No schedule ever runs twice at the same time, no occurrence waits for ever, and each one ran or was left out with its
reason. `TEST_OVERLAP_OCCURRENCES=5000` lets so many occurrences fall due instead of 100.
"""

from __future__ import annotations

import os
import random
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Count, Q, Sum
from django.utils import timezone as clock

from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.own_broker import close_own_broker, own_broker
from scheduling.inbox.actions import republish
from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

OCCURRENCES = int(os.environ.get("TEST_OVERLAP_OCCURRENCES", "100"))
SEED = int(os.environ.get("TEST_SEED", "20261123"))
SCHEDULES = 20
LEASE = 3


POLICIES = ("skip", "wait", "replace")


def test_no_schedule_runs_twice_and_no_occurrence_is_lost(
    commands: Commands, tmp_path: Path, broker_url: str, settings: Any
) -> None:
    settings.BROKER_URL = broker_url
    print(f"seed {SEED}, {OCCURRENCES} occurrences")  # noqa: T201 - shown if the test fails
    pick = random.Random(SEED)
    rows = [
        SchedulerFactory(
            handler="tests.exclusive", overlap=POLICIES[number % 3], schedule="0 0 1 1 *",
            params={"directory": str(tmp_path), "name": f"job{number}", "seconds": pick.uniform(0, 0.4)},
        )
        for number in range(SCHEDULES)
    ]  # fmt: skip
    environment = {"BROKER_URL": broker_url, "CRON_LEASE_SECONDS": str(LEASE), "CRON_MAX_RETRIES": "3"}
    names = ["run_scheduler", "run_scheduler", "run_worker", "run_worker"]
    options = {"run_worker": ["--concurrency", "4"], "run_scheduler": []}
    processes = [commands.start(name, *options[name], **environment) for name in names]
    commands.ready(*processes)
    # Each occurrence is an instant of its own in the past hours, so that it has a key of its own.
    instant = clock.now().replace(second=0, microsecond=0) - timedelta(hours=20)
    made = kills = 0
    while made < OCCURRENCES:
        instant += timedelta(seconds=1)
        chosen = pick.sample(rows, pick.randrange(1, SCHEDULES + 1))[: OCCURRENCES - made]
        ids = [row.pk for row in chosen]
        Scheduler.objects.filter(pk__in=ids).update(next_run_at=instant)
        made += len(chosen)
        if pick.random() < 0.1:
            index = pick.randrange(len(names))
            commands.stop(processes[index], signal.SIGKILL)
            processes[index] = commands.start(names[index], *options[names[index]], **environment)
            kills += 1
        # The yearly schedule has its next occurrence far away, so a claim moves `next_run_at` into the future.
        waiting = Scheduler.objects.filter(pk__in=ids, next_run_at__lt=clock.now())
        wait_for(lambda waiting=waiting: not waiting.exists(), "the occurrences are claimed")
        if pick.random() < 0.05:
            failed = SchedulerExecution.objects.filter(state="failed").values_list("pk", flat=True)
            republish(list(failed[:3]), own_broker(), "ann")
    wait_for(lambda: not SchedulerExecution.objects.in_state(*OPEN_STATES).exists(), "everything has ended", 180)
    assert kills >= 1
    lines = [line for path in tmp_path.glob("job*.txt") for line in path.read_text().splitlines()]
    assert [line for line in lines if line.startswith("TWICE")] == []
    found = SchedulerExecution.objects.aggregate(
        ran=Count("pk", filter=~Q(state="skipped")), left_out=Sum("missed", filter=Q(state="skipped"))
    )
    assert found["ran"] + (found["left_out"] or 0) == OCCURRENCES, found
    assert found["left_out"], found
    for skip in SchedulerExecution.objects.filter(state="skipped"):
        assert skip.reason.startswith("Left out, because "), skip.reason
    for number, policy in enumerate(POLICIES):
        mine = SchedulerExecution.objects.filter(scheduler__overlap=policy)
        counts = dict(mine.order_by().values_list("state").annotate(Count("pk")))
        print(policy, counts)  # noqa: T201 - shown if the test fails
        assert counts.get("skipped" if number < 2 else "cancelled"), counts
    close_own_broker()
