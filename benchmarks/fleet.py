"""Measures what several producers and consumers do together: `python -m benchmarks.fleet --database URL --broker URL`.

All processes are real commands on this machine, and share its processors with the servers. So the rates are lower
bounds of what several machines do.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.__main__ import fill
from benchmarks.history import clear
from benchmarks.site import ROOT, enter
from benchmarks.wipe import wipe

DUE, RUNS = 20_000, 4_000


def main() -> int:
    """Measure and print each line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--broker", default="database://")
    parser.add_argument("--producers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--consumers", type=int, nargs="*", default=[1, 2])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        enter(Path(name), options.database, options.broker)
        for count in options.producers:
            print(f"{count} producers: {claimed_a_second(count):,.0f} occurrences/s claimed and published", flush=True)
        for count in options.consumers:
            print(f"{count} consumers of concurrency 8: {runs_a_second(count):,.0f} no-op runs/s", flush=True)
        clear()
        if not options.broker.startswith("database:"):
            wipe()
    return 0


@contextmanager
def processes(kind: str, count: int, *arguments: str) -> Iterator[None]:
    """Run a command several times. They have sent their first heartbeat when the block begins."""
    from scheduling.models import Process

    Process.objects.all().delete()
    command = [sys.executable, "manage.py", *arguments]
    started = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        wait_until(lambda: Process.objects.filter(kind=kind).count() == count, 60)
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)


def wait_until(reached: Callable[[], bool], seconds: float) -> None:
    """Ask every tenth of a second."""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            raise TimeoutError("The processes did not get there.")
        time.sleep(0.1)


def claimed_a_second(producers: int) -> float:
    """The rate at which producers claim and publish DUE occurrences of one minute, from the minute to the last one."""
    from django.utils import timezone as clock

    from scheduling.models import Scheduler, SchedulerExecution

    fill(DUE)
    with processes("producer", producers, "run_scheduler"):
        due = next_minute(clock.now() + timedelta(seconds=5))
        plan = {"schedule": "* * * * *", "planned_schedule": "* * * * *", "next_run_at": due}
        Scheduler.objects.filter(description="bench").update(**plan)
        found = SchedulerExecution.objects.filter(scheduled_at=due, published_at__isnull=False)
        wait_until(lambda: clock.now() > due and found.count() == DUE, 110)
        last = found.order_by("-published_at").values_list("published_at", flat=True)[0]
    Scheduler.objects.filter(description="bench").delete()
    assert last is not None
    return DUE / (last - due).total_seconds()


def next_minute(instant: datetime) -> datetime:
    """The first full minute after an instant."""
    return instant.replace(second=0, microsecond=0) + timedelta(minutes=1)


def runs_a_second(consumers: int) -> float:
    """The rate at which consumers run RUNS executions, from the first start to the last end."""
    from scheduling.broker import get_broker
    from scheduling.execution.publish import publish
    from scheduling.models import Attempt
    from tests.factories import ManualExecutionFactory, SchedulerFactory

    clear()
    broker = get_broker()
    with processes("consumer", consumers, "run_worker", "--concurrency", "8"):
        row = SchedulerFactory(rare=True, handler="tests.noop")
        columns = {} if broker.embedded else {"state": "claimed", "published_at": None}
        publish(ManualExecutionFactory.bulk(RUNS, scheduler=row, **columns), broker)
        wait_until(lambda: Attempt.objects.filter(finished_at__isnull=False).count() == RUNS, 120)
    broker.close()
    times = list(Attempt.objects.values_list("started_at", "finished_at"))
    return RUNS / (max(end for _, end in times) - min(start for start, _ in times)).total_seconds()


if __name__ == "__main__":
    sys.exit(main())
