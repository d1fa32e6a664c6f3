"""Measures one evaluation of 200 alert rules on a large history.

Start it with `python -m benchmarks.alerts [--database URL]`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.pages import fill
from benchmarks.site import enter

LIMIT_MS = 50
RULES = 200
OPEN = 300
"""So many executions run, wait and wait for a retry."""

KINDS = (
    "not_started", "not_finished", "failed_in_a_row", "slow", "skipped", "retried", "inbox", "retry_share",
    "group_back",
)  # fmt: skip
"""The kinds that can be about one schedule."""


def main() -> int:
    """Set up a site, measure and print the times in milliseconds. Returns 1 if the median is too high."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.alerts")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--queries", action="store_true", help="print the slowest queries of one evaluation")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="alerts-") as name:
        enter(Path(name), options.database, "database://")
        fill(options.executions)
        prepare()
        first = [evaluated()]
        times = [evaluated() for _ in range(options.repeat)]
        alerts = open_alerts()
        print(f"first evaluation of {RULES} rules: {shown([one[0] for one in first])}, {alerts} open alerts")
        print(f"elapsed: {shown([one[0] for one in times])}")
        print(f"processor time of this process: {shown([one[1] for one in times])}")
        if options.queries:
            print_queries()
        return int(statistics.median(one[0] for one in times) > LIMIT_MS)


def shown(times: list[float]) -> str:
    """The median, the minimum and the maximum."""
    return f"{statistics.median(times):.1f} ms [{min(times):.1f}-{max(times):.1f}]"


def prepare() -> None:
    """Store the rules, processes that are alive, and executions that are open."""
    from django.utils import timezone as clock

    from scheduling.models import AlertRule, Process, Scheduler, SchedulerExecution

    now = clock.now()
    ahead = now + timedelta(hours=1)
    Process.objects.all().delete()
    for kind in ("producer", "consumer"):
        Process.objects.create(
            container_id=kind, kind=kind, host="host", pid=1, started_at=now, heartbeat_at=now,
            info={"queue": "main,standalone"},
        )  # fmt: skip
    Scheduler.objects.filter(next_run_at__lt=ahead).update(next_run_at=ahead)
    schedules = list(Scheduler.objects.filter(description__startswith="season ").values_list("pk", flat=True)[:1_000])
    own = SchedulerExecution.objects.filter(execution_key__startswith="bench-")
    own.delete()
    SchedulerExecution.objects.bulk_create(
        [
            SchedulerExecution(**_open(state, number, schedules[number * 7 % len(schedules)], now))
            for state in ("running", "queued", "retrying")
            for number in range(OPEN)
        ]
    )
    AlertRule.objects.filter(name__startswith="bench ").delete()
    missing = RULES - AlertRule.objects.filter(enabled=True).count()
    AlertRule.objects.bulk_create(
        [
            AlertRule(
                name=f"bench {number}", kind=KINDS[number % len(KINDS)], severity="warning", at="06:30",
                schedule_id=schedules[number],
            )
            for number in range(missing)
        ]
    )  # fmt: skip


def _open(state: str, number: int, schedule: int, now: datetime) -> dict[str, Any]:
    return {
        "scheduler_id": schedule, "execution_key": f"bench-{state}-{number}", "scheduled_at": now, "executed_at": now,
        "trigger": "cron", "type": "worker", "target_id": 1, "target_name": "tests.noop", "params": {},
        "container_id": "producer-1-abcd", "attempt": 0 if state == "queued" else 1, "state": state, "wake_at": now,
        "started_at": None if state == "queued" else now,
    }  # fmt: skip


def evaluated() -> tuple[float, float]:
    """The milliseconds of an evaluation: elapsed, and processor time of this process."""
    from django.utils import timezone as clock

    from scheduling.alerts.evaluation import evaluate
    from scheduling.alerts.look import Look
    from scheduling.models import Process

    Process.objects.update(heartbeat_at=clock.now())
    begin, used = time.perf_counter(), time.process_time()
    evaluate(Look(clock.now()))
    return 1_000 * (time.perf_counter() - begin), 1_000 * (time.process_time() - used)


def open_alerts() -> int:
    """How many alerts are open. No rule may have an error."""
    from scheduling.models import Alert, AlertRule

    errors = list(AlertRule.objects.exclude(error="").values_list("name", "error")[:3])
    assert not errors, errors
    return Alert.objects.filter(ended_at=None).count()


def print_queries() -> None:
    """Print how many queries an evaluation makes, and the slowest of them."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        evaluated()
    queries = sorted(captured.captured_queries, key=lambda query: -float(query["time"]))
    print(f"{len(queries)} queries, {1_000 * sum(float(query['time']) for query in queries):.1f} ms")
    for query in queries[:8]:
        print(f"  {1_000 * float(query['time']):.1f} ms  {query['sql'][:300]}")


if __name__ == "__main__":
    sys.exit(main())
