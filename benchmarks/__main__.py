"""Measures rates, times and memory, and prints the results as a table.

Start it with `make bench` or with `python -m benchmarks [--database URL] [--broker URL]`.

A consumer's rate is the number of runs divided by the seconds from the first start to the last end. The rows of the
attempts hold both times. On a busy machine, results vary by tens of percent. The table therefore shows the median, the
minimum and the maximum of `--repeat` measurements.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.history import clear
from benchmarks.idle import statements_a_second
from benchmarks.inbox import groups_seconds
from benchmarks.lost_messages import mean_ms, slowest_ms
from benchmarks.site import ROOT, enter
from benchmarks.wipe import wipe

Row = tuple[str, str, str]

BROKER_ONLY = "RabbitMQ"
"""A measurement with this word in its title needs RabbitMQ. The database transport sends no messages."""

SERVER_ONLY = "server"
"""A measurement with this word in its title needs a database server that `--database` names with its port."""


def main() -> int:
    """Run the chosen measurements and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--broker", default="database://")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", default="", help="a part of a row's name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        enter(Path(name), options.database, options.broker)
        print(f"{'measured':58} {'median [least-most]':30} to reach", flush=True)
        for title, goal, measure in MEASURES:
            if BROKER_ONLY in title and options.broker.startswith("database:"):
                continue
            if SERVER_ONLY in title and (not options.database or options.database.startswith("sqlite")):
                continue
            if options.only in title:
                if not options.broker.startswith("database:"):
                    wipe()  # a consumer would also run what an earlier measurement has left, even one that was cut off
                values = sorted(measure() for _ in range(options.repeat))
                shown = f"{statistics.median(values):.4g} [{values[0]:.4g}-{values[-1]:.4g}]"
                print(f"{title:58} {shown:30} {goal}", flush=True)
    return 0


def rate(handler: str, concurrency: int, runs: int) -> float:
    """Measure the runs per second of one consumer, from the first start to the last end."""
    from scheduling.broker import get_broker
    from scheduling.execution.publish import publish
    from scheduling.models import Attempt
    from tests.factories import ManualExecutionFactory, SchedulerFactory

    clear()
    embedded = (broker := get_broker()).embedded
    row = SchedulerFactory(rare=True, handler=handler)
    columns = {} if embedded else {"state": "claimed", "published_at": None}
    publish(ManualExecutionFactory.bulk(runs, scheduler=row, **columns), broker)
    broker.close()
    arguments = ["run_worker", "--concurrency", str(concurrency), "--max-runs", str(runs)]
    subprocess.run([sys.executable, "manage.py", *arguments], cwd=ROOT, check=True)
    times = list(Attempt.objects.values_list("started_at", "finished_at"))
    assert len(times) == runs
    return runs / (max(end for _, end in times) - min(start for start, _ in times)).total_seconds()


def times_single(concurrency: int) -> float:
    """Measure how many times faster no-ops run in batches of 100 than by themselves, one after the other."""
    single = rate("tests.noop", concurrency, 2_000)
    batched = rate("tests.batch_nothing", concurrency, 10_000)
    print(f"  single {single:.0f}/s, in batches {batched:.0f}/s", file=sys.stderr, flush=True)
    return batched / single


def claim_seconds(count: int) -> float:
    """Measure the seconds that one process needs to claim and publish `count` executions of the same minute."""
    from scheduling.broker import get_broker
    from scheduling.execution.claim import claim_due
    from scheduling.execution.publish import publish
    from scheduling.models import Scheduler, SchedulerExecution

    fill(count)

    noon = datetime(2026, 3, 10, 12, tzinfo=UTC)
    Scheduler.objects.filter(description="bench").update(next_run_at=noon)
    broker = get_broker()
    begin = time.perf_counter()
    while (done := claim_due(noon, embedded=broker.embedded)) and done.claimed:
        publish(done.claimed, broker)
    taken = time.perf_counter() - begin
    broker.close()
    assert SchedulerExecution.objects.count() == count
    return taken


def published_a_second(count: int) -> float:
    """Measure how many messages per second one process publishes with confirms.

    A batch has 1,000 messages, as in a producer.
    """
    from scheduling.broker import get_broker
    from scheduling.core.messages import TaskMessage

    now = datetime.now(UTC)
    messages = [
        TaskMessage(
            "worker", 1, scheduler_id=1, execution_id=number, execution_key="cron-2026-3-10-12-0", scheduled_at=now
        )
        for number in range(1, count + 1)
    ]
    broker = get_broker()
    broker.declare()
    begin = time.perf_counter()
    confirmed = sum(len(broker.publish(messages[at : at + 1000])) for at in range(0, count, 1000))
    taken = time.perf_counter() - begin
    broker.close()
    assert confirmed == count
    return count / taken


def fill(count: int) -> None:
    """Make sure that there are exactly `count` benchmark schedules, and that none of them is due."""
    from scheduling.models import Scheduler, Worker

    clear()
    worker = Worker.objects.get(name="tests.noop")
    rows = Scheduler.objects.filter(description="bench")
    if rows.count() != count:
        rows._raw_delete(rows.db)
        far = datetime(2199, 1, 1, tzinfo=UTC)
        plan = {"schedule": "0 12 * * *", "timezone": "", "status": True}
        planned = {f"planned_{name}": value for name, value in plan.items()}
        Scheduler.objects.bulk_create(
            [
                Scheduler(worker=worker, description="bench", next_run_at=far + timedelta(minutes=n), **plan, **planned)
                for n in range(count)
            ],
            batch_size=1000,
        )
    rows.update(next_run_at=datetime(2199, 1, 1, tzinfo=UTC))


def idle_tick_ms(count: int) -> float:
    """Measure one pass of a producer's loop, in milliseconds. None of the `count` schedules is due."""
    from django.utils import timezone as clock

    from scheduling.broker import get_broker
    from scheduling.execution.claim import next_due
    from scheduling.producer.sweeps import sweep

    fill(count)
    broker = get_broker()
    sweep(broker, clock.now())
    begin = time.perf_counter()
    for _ in range(50):
        next_due()
        sweep(broker, clock.now())
    broker.close()
    return (time.perf_counter() - begin) / 50 * 1000


def idle_megabytes(*arguments: str) -> float:
    """Measure the resident memory of one idle command, in MB. The memory of child processes does not count.

    The process does not load the app with the tests' handlers, which grows with the tests.
    """
    environment = {**os.environ, "EXTRA_APPS": ""}
    command = [sys.executable, "manage.py", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, env=environment)
    try:
        time.sleep(6)
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")
    finally:
        process.terminate()
        process.wait(30)


def next_after_us() -> float:
    """Measure the mean time of a call of `next_after`, in microseconds.

    The calls use ten ordinary cron expressions in two time zones.
    """
    from scheduling.core.cron import next_after, parse

    expressions = (
        "* * * * *|*/5 * * * *|0 * * * *|0 8 * * *|30 2 * * 1-5|"
        "0 0 1 * *|15 6 L * *|0 9 * * 1#1|0 0 29 2 *|5,35 7-19 * * *"
    )
    crons = [parse(text) for text in expressions.split("|")]
    at = datetime(2026, 1, 1, tzinfo=UTC)
    instants = [at + timedelta(hours=37 * n) for n in range(200)]
    begin = time.perf_counter()
    for instant in instants:
        for cron in crons:
            next_after(cron, "UTC", instant)
            next_after(cron, "America/New_York", instant)
    return (time.perf_counter() - begin) / (len(instants) * len(crons) * 2) * 1e6


MEASURES: list[tuple[str, str, Callable[[], float]]] = [
    ("no-op runs/s with history, concurrency 1", "500 embedded, 900 RabbitMQ", lambda: rate("tests.noop", 1, 2000)),
    ("no-op runs/s with history, concurrency 2", "500 embedded, 900 RabbitMQ", lambda: rate("tests.noop", 2, 2000)),
    ("no-op runs/s with history, concurrency 8", "500 embedded, 900 RabbitMQ", lambda: rate("tests.noop", 8, 2000)),
    ("runs/s of no-ops in batches of 100, beside single ones", "5 times as many", lambda: times_single(1)),
    ("runs/s in a fresh process each, concurrency 1", "120", lambda: rate("tests.noop_fresh", 1, 600)),
    ("runs/s in a fresh process each, concurrency 2", "120, 200 RabbitMQ", lambda: rate("tests.noop_fresh", 2, 600)),
    ("s to claim and publish 1,000 due at one minute", "1", lambda: claim_seconds(1_000)),
    ("s to claim and publish 10,000 due at one minute", "3", lambda: claim_seconds(10_000)),
    (f"messages/s published and confirmed by one process, {BROKER_ONLY}", "10,000", lambda: published_a_second(20_000)),
    ("ms of a tick and its sweeps, nothing due, 100,000 rows", "5", lambda: idle_tick_ms(100_000)),
    ("MB resident, idle producer", "80", lambda: idle_megabytes("run_scheduler")),
    ("MB resident, idle supervisor", "80", lambda: idle_megabytes("run_worker")),
    ("us of next_after", "60", next_after_us),
    (f"statements/s of an idle consumer, {SERVER_ONLY}", "0.4 RabbitMQ", lambda: statements_a_second("run_worker")),
    (f"statements/s of an idle producer, {SERVER_ONLY}", "", lambda: statements_a_second("run_scheduler")),
    (
        f"statements/s, it evaluates the alerts, {SERVER_ONLY}",
        "",
        lambda: statements_a_second("run_worker", alerts=True),
    ),
    (f"ms of a sweep for lost messages, 500,000 wait, {BROKER_ONLY}", "20", lambda: mean_ms(500_000)),
    (f"ms of the slowest such sweep, 500,000 wait, {BROKER_ONLY}", "20", lambda: slowest_ms(500_000)),
    ("s to show 5,000 failures of three causes as groups", "1 on SQLite", groups_seconds),
]


if __name__ == "__main__":
    sys.exit(main())
