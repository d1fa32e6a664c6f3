"""Measures a scrape of /metrics and a pass of the tallies on a large history.

Start it with `python -m benchmarks.metrics [--database URL]`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.pages import fill
from benchmarks.site import enter

LIMIT_MS = 50
TOKEN = "a-token-of-the-benchmark"  # noqa: S105 - no secret
TARGETS, OUTCOMES = 200, ("succeeded", "failed", "timed_out", "crashed")
TALLIED = 20_000
"""So many attempts are tallied before the scrapes."""


def main() -> int:
    """Set up a site, measure and print the times in milliseconds. Returns 1 if the median of a scrape is too high."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="metrics-") as name:
        enter(Path(name), options.database, "database://", ALLOWED_HOSTS="testserver", CRON_METRICS_TOKEN=TOKEN)
        fill(options.executions)
        from scheduling.execution import tallying

        passes = tally_passes()
        each = tallying.ATTEMPTS_PER_PASS
        rate = 1_000 * each / median(passes)
        print(f"pass of {each} attempts: {shown(passes)}, {rate:.0f} attempts a second", flush=True)
        print(f"sweep with nothing to tally: {shown(idle_sweeps(options.repeat))}", flush=True)
        settle()
        small = scrapes(options.repeat)
        print(f"scrape: {shown(small)}", flush=True)
        many_series()
        settle()
        large = scrapes(options.repeat)
        print(f"scrape with {TARGETS} targets and {len(OUTCOMES)} outcomes of each: {shown(large)}")
        return int(max(median(small), median(large)) > LIMIT_MS)


class Spent(NamedTuple):
    """The milliseconds that a function has taken, and the CPU time of this process in them."""

    elapsed: float
    processor: float


def shown(times: list[Spent]) -> str:
    """The median, the minimum and the maximum; the median of the CPU time, and the load of the machine."""
    elapsed = [spent.elapsed for spent in times]
    processor = statistics.median(spent.processor for spent in times)
    span = f"{statistics.median(elapsed):.1f} ms [{min(elapsed):.1f}-{max(elapsed):.1f}]"
    return f"{span}, CPU {processor:.1f} ms, load {os.getloadavg()[0]:.1f}"


def median(times: list[Spent]) -> float:
    """The median of the elapsed milliseconds."""
    return statistics.median(spent.elapsed for spent in times)


def timed(work: Callable[[], object]) -> Spent:
    """How long a function takes. The CPU time of a database server is not in it."""
    begin, used = time.perf_counter(), time.process_time()
    work()
    return Spent(1_000 * (time.perf_counter() - begin), 1_000 * (time.process_time() - used))


def tally_passes() -> list[Spent]:
    """Tally a part of the history. Returns the milliseconds of each pass."""
    from django.utils import timezone as clock

    from scheduling.execution import tallying
    from scheduling.models import TallyMark

    now = clock.now()
    tallying.PASSES = 1
    tallying.tally_waiting(now)
    later = now + timedelta(minutes=1)
    found = [timed(lambda: tallying.tally_waiting(later)) for _ in range(TALLIED // tallying.ATTEMPTS_PER_PASS)]
    mark = TallyMark.objects.get()
    TallyMark.objects.update(attempt=mark.seen)
    return found


def idle_sweeps(repeat: int) -> list[Spent]:
    """The milliseconds of sweeps that find nothing."""
    from django.utils import timezone as clock

    from scheduling.execution.tallying import tally_waiting

    tally_waiting(clock.now())
    return [timed(lambda: tally_waiting(clock.now())) for _ in range(repeat)]


def settle() -> None:
    """Do what a server does by itself a while after so many rows were written: collect statistics."""
    from django.db import connection

    from scheduling.models import SchedulerExecution, Tally, TallyTotal

    tables = ", ".join(model._meta.db_table for model in (SchedulerExecution, Tally, TallyTotal))
    said = {"mysql": f"ANALYZE TABLE {tables}", "postgresql": f"VACUUM ANALYZE {tables}"}
    if connection.vendor in said:
        with connection.cursor() as cursor:
            cursor.execute(said[connection.vendor])


def many_series() -> None:
    """Store totals of as many targets as there may be, with each outcome and each duration."""
    from scheduling.core.tallies import BOUNDS, Total
    from scheduling.models import TallyTotal

    totals = [
        Total("worker", f"project.module.handler_{number}", outcome, bucket)
        for number in range(TARGETS)
        for outcome in OUTCOMES
        for bucket in range(len(BOUNDS) + 1)
    ]
    rows = [
        TallyTotal(
            key=one.key, target_key=one.target_key, type=one.type, target=one.target, outcome=one.outcome,
            bucket=one.bucket, attempts=9, milliseconds=99,
        )
        for one in totals
    ]  # fmt: skip
    TallyTotal.objects.bulk_create(rows, batch_size=500)


def scrapes(repeat: int) -> list[Spent]:
    """The milliseconds of requests of /metrics, without the first one."""
    from django.test import Client

    client = Client(headers={"Authorization": f"Bearer {TOKEN}"})

    def scrape() -> None:
        response = client.get("/metrics")
        assert response.status_code == 200, response.content

    scrape()
    return [timed(scrape) for _ in range(repeat)]


if __name__ == "__main__":
    sys.exit(main())
