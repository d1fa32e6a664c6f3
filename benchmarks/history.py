"""Fills a database with 90 days of history: schedules, executions, attempts and output."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

SCHEDULES = 10_000
DAYS = 90
BATCH = 2_000
FAILED, SKIPPED = 0.03, 0.01

ERRORS = (
    ("builtins.ConnectionError", "no route to 10.1.2.3", "net"),
    ("builtins.TimeoutError", "the bank took longer than 30 s", "bank"),
    ("builtins.ValueError", "invoice 4711 has no total", "invoice"),
)


def clear() -> None:
    """Delete all executions with their attempts and output."""
    from scheduling.models import Attempt, Output, SchedulerExecution

    for model in (Output, Attempt, SchedulerExecution):
        rows = model._default_manager.all()
        rows._raw_delete(rows.db)


def make(executions: int, seed: int = 1) -> None:
    """Fill empty tables.

    Args:
        executions: how many executions to create. Their starts are spread evenly over the last 90 days.
        seed: seed of the random numbers.
    """
    from django.db import connection

    from scheduling.models import Scheduler, SchedulerExecution, Worker

    pick = random.Random(seed)
    worker = Worker.objects.get(name="tests.noop")
    Scheduler.objects.bulk_create(
        [
            Scheduler(worker=worker, schedule=_cron(number), description=f"season {number}", status=True)
            for number in range(SCHEDULES)
        ],
        batch_size=500,
    )
    for row in Scheduler.objects.filter(description__startswith="season "):
        row.save()  # `bulk_create` does not plan the schedule, but `save` does
    ids = list(Scheduler.objects.filter(description__startswith="season ").values_list("pk", flat=True))
    rows: list[SchedulerExecution] = []
    for columns in _executions(executions, ids, worker.pk, pick):
        rows.append(SchedulerExecution(**columns))
        if len(rows) == BATCH:
            SchedulerExecution.objects.bulk_create(rows)
            rows = []
    SchedulerExecution.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        # Every execution that ran gets one attempt. The latest 100,000 of these executions get one line of output each.
        release = connection.ops.quote_name("release")  # a reserved word of MariaDB
        cursor.execute(
            "INSERT INTO scheduling_attempt (execution_id, number, started_at, finished_at, consumer, pid, outcome,"
            f" error_class, error_message, traceback, result, {release}) SELECT id, 1, started_at, finished_at,"
            " consumer, pid, state, error_class, error_message, '', '', '' FROM scheduling_schedulerexecution"
            " WHERE started_at IS NOT NULL"
        )
        cursor.execute(
            "INSERT INTO scheduling_output (execution_id, attempt, sequence, text, created_at)"
            " SELECT id, 1, 1, '2026-01-01T00:00:00.000Z INFO done', finished_at FROM scheduling_schedulerexecution"
            " WHERE started_at IS NOT NULL ORDER BY id DESC LIMIT 100000"
        )
        cursor.execute("ANALYZE" if connection.vendor != "mysql" else "ANALYZE TABLE scheduling_schedulerexecution")


def _cron(number: int) -> str:
    """Many different expressions: a fifth of the schedules runs every few minutes, the others once an hour or a day."""
    minute, hour = number % 60, number // 60 % 24
    return ("*/5 * * * *", f"{minute} * * * *", f"{minute} {hour} * * *", f"{minute} {hour} * * 1-5")[
        min(number % 5, 3)
    ]


def _executions(count: int, schedulers: list[int], worker: int, pick: random.Random) -> Iterator[dict[str, Any]]:
    now = datetime.now(UTC)
    step = timedelta(days=DAYS) / count
    for number in range(count):
        instant = now - timedelta(days=DAYS) + step * number
        columns: dict[str, Any] = {
            "scheduler_id": schedulers[number % len(schedulers)],
            "execution_key": f"season-{number}",
            "scheduled_at": instant,
            "executed_at": instant,
            "trigger": "cron",
            "type": "worker",
            "target_id": worker,
            "target_name": "tests.noop",
            "params": {"number": number},
            "container_id": "producer-1-abcd",
            "attempt": 1,
            "state": "succeeded",
        }
        drawn = pick.random()
        if drawn < SKIPPED:
            columns |= {"state": "skipped", "finished_at": instant, "reason": "Missed.", "attempt": 0, "missed": 1}
        else:
            end = instant + timedelta(seconds=pick.expovariate(0.5))
            columns |= {"started_at": instant, "finished_at": end, "published_at": instant, "consumer": "consumer-1-a"}
            if drawn < SKIPPED + FAILED:
                error, message, group = pick.choice(ERRORS)
                columns |= {"state": "failed", "error_class": error, "error_message": message, "fingerprint": group}
        yield columns
