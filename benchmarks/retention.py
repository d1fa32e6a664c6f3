"""Measures how fast retention removes old executions, and how long its slowest batch takes.

Start it with `python -m benchmarks.retention --rows 1000000 [--database URL]`. The database must be empty, and no
other program may use it. Each execution has one attempt and one piece of output. One in twenty is a failure, which
stays.

The first pass applies the ages of the settings, the second one a count of executions for each schedule, the third one
has nothing to do. A pass prints its executions a second, its slowest batch in milliseconds (reading included), and how
many batches took more than 100 ms.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from benchmarks.site import enter

SCHEDULES = 1_000
AT_ONCE = 100_000
"""How many executions one INSERT makes."""

OLD, YOUNGER = 40, 20
"""The ages of the two halves of the executions, in days. The age of the settings is 30 days."""


def main() -> None:
    """Fill the database, run the passes and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retention")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="retention-") as name:
        enter(Path(name), options.database)
        begin = time.perf_counter()
        fill(options.rows)
        print(f"{options.rows} executions made in {time.perf_counter() - begin:.0f} s", flush=True)
        keep = max(1, options.rows // SCHEDULES // 4)
        measure("ages", {})
        measure(f"newest {keep} of each schedule", {"CRON_RETENTION_KEEP": keep})
        measure("nothing to do", {"CRON_RETENTION_KEEP": keep})


def measure(title: str, settings: dict[str, int]) -> None:
    """Run one pass and print its line."""
    from django.test import override_settings

    from scheduling.execution.retention import prune

    ticks: list[float] = []

    def monotonic() -> float:
        ticks.append(time.monotonic())
        return ticks[-1]

    begin = time.perf_counter()
    with override_settings(**settings):
        done = prune(datetime.now(UTC), monotonic=monotonic)
    seconds = time.perf_counter() - begin
    batches = [after - before for before, after in pairwise(ticks)]
    slow = sum(batch > 0.1 for batch in batches)
    print(
        f"{title:32} {done.executions:9} executions in {seconds:6.1f} s, {done.executions / seconds:8.0f}/s; "
        f"slowest batch {done.slowest * 1000:6.1f} ms, {slow} of {len(batches)} above 100 ms",
        flush=True,
    )


def fill(count: int) -> None:
    """Make `count` executions of 1,000 schedules: the first half is old, the second half is younger."""
    from django.db import connection

    from benchmarks.history import clear
    from scheduling.models import Scheduler, SchedulerExecution, Worker

    clear()
    worker = Worker.objects.get(name="tests.noop")
    Scheduler.objects.filter(description="retention").delete()
    made = [Scheduler(worker=worker, schedule="0 0 1 1 *", description="retention") for _ in range(SCHEDULES)]
    Scheduler.objects.bulk_create(made, batch_size=500)
    keys = list(Scheduler.objects.filter(description="retention").values_list("pk", flat=True))
    now = datetime.now(UTC)
    seed = [
        SchedulerExecution(
            scheduler_id=keys[number % SCHEDULES], execution_key=f"seed-{number}", trigger="cron", type="worker",
            target_id=worker.pk, target_name="tests.noop", params={"number": number}, container_id="producer-1",
            consumer="consumer-1", attempt=1, state="failed" if number % 20 == 19 else "succeeded",
            **dict.fromkeys(("scheduled_at", "executed_at", "started_at", "finished_at"), now - timedelta(days=OLD)),
        )
        for number in range(min(count, 10_000))
    ]  # fmt: skip
    SchedulerExecution.objects.bulk_create(seed, batch_size=1_000)
    ordered = SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True)  # the keys may have gaps
    copied = (
        "scheduler_id", "scheduled_at", "requested_by", "type", "target_id", "target_name", "params", "executed_at",
        "container_id", "queue", "state", "attempt", "retry_base", "consumer", "started_at", "finished_at", "progress",
        "error_class", "error_message", "fingerprint", "reason", "missed", "cancel_requested_by",
    )  # fmt: skip
    there = len(seed)
    quote = connection.ops.quote_name
    columns = ", ".join(map(quote, copied))
    key = "CONCAT('copy-{0}-', id)" if connection.vendor == "mysql" else "'copy-{0}-' || id"
    trigger = quote("trigger")
    with connection.cursor() as cursor:
        while there < count:
            number = min(there, count - there, AT_ONCE)
            cursor.execute(
                f"INSERT INTO scheduling_schedulerexecution ({columns}, {trigger}, execution_key)"
                f" SELECT {columns}, {trigger}, {key.format(there)} FROM scheduling_schedulerexecution"
                f" WHERE id <= {ordered[number - 1]} ORDER BY id"
            )
            there += number
        middle, last = ordered[count // 2], ordered.reverse()[0]
        young = now - timedelta(days=YOUNGER)
        for start in range(middle - 1, last, AT_ONCE):
            rows = SchedulerExecution.objects.filter(pk__gt=start, pk__lte=start + AT_ONCE)
            rows.update(scheduled_at=young, executed_at=young, finished_at=young)
        cursor.execute(
            "INSERT INTO scheduling_attempt (execution_id, number, started_at, finished_at, consumer, outcome,"
            " error_class, error_message, traceback) SELECT id, 1, started_at, finished_at, consumer, state,"
            " '', '', '' FROM scheduling_schedulerexecution ORDER BY id"
        )
        line = "2026-01-01T00:00:00.000Z INFO done " + "x" * 200
        cursor.execute(
            "INSERT INTO scheduling_output (execution_id, attempt, sequence, text, created_at)"
            f" SELECT id, 1, 1, '{line}', finished_at FROM scheduling_schedulerexecution ORDER BY id"
        )
        cursor.execute("ANALYZE" if connection.vendor != "mysql" else "ANALYZE TABLE scheduling_schedulerexecution")
    assert SchedulerExecution.objects.count() == count


if __name__ == "__main__":
    main()
