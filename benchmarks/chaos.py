"""Kill producers, consumers and children at random, and count lost and repeated runs.

    python -m benchmarks.chaos --minutes 10 --schedules 200          # schedules that run every minute
    python -m benchmarks.chaos --tasks 10000 --kills 30              # a backlog of 20 ms tasks
    python -m benchmarks.chaos --tasks 4000 --kills 0 --wipe         # deletes all queues of RabbitMQ

DATABASE_URL and BROKER_URL choose the database and the broker. The default is SQLite in a temporary folder and the
database transport. When a handler starts and when it ends, it writes a line (a mark) to a file outside the database.
The program prints its seed. The same seed gives the same plan of faults.

Exit code 0 means that no run was lost and that every repeated run has a recorded cause.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks import raw_data
from benchmarks.chaos_fleet import Fleet
from benchmarks.site import enter
from benchmarks.wipe import tell, wipe


def main() -> int:
    """Read the options and run one trial."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=0.0, help="run minutely schedules for so long")
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=0, help="or: a backlog of so many tasks")
    parser.add_argument("--task-seconds", type=float, default=0.02)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--producers", type=int, default=2)
    parser.add_argument("--consumers", type=int, default=2)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--restart-broker", default="", help="a shell command, run twice")
    parser.add_argument("--wipe", action="store_true", help="delete all queues of RabbitMQ when a third is done")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--raw", type=Path, default=None, help="a folder for the raw data, as CSV")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        return run(options, random.Random(seed), Path(name))


def run(options: argparse.Namespace, pick: random.Random, directory: Path) -> int:
    """Run one trial in its own folder and return the exit code."""
    marks = directory / "marks"
    marks.mkdir()
    inherited = os.environ.get
    enter(
        directory,
        inherited("DATABASE_URL", ""),
        inherited("BROKER_URL", "database://"),
        CRON_RETRY_DELAY_MS=inherited("CRON_RETRY_DELAY_MS", "1000"),
        CRON_MAX_RETRIES="19",
    )
    from benchmarks.audit import audit
    from scheduling.models import Scheduler, Worker

    Scheduler.objects.update(status=False)
    worker = Worker.objects.get(name="tests.mark")
    params = {"directory": str(marks), "seconds": options.task_seconds}
    fleet = Fleet(directory)
    try:
        begin = prepare(options, worker, params)
        for number in range(options.producers):
            fleet.start(f"producer-{number}", "run_scheduler")
        for number in range(options.consumers):
            fleet.start(f"consumer-{number}", "run_worker", "--concurrency", str(options.concurrency))
        end = begin + timedelta(minutes=options.minutes)
        faults(options, fleet, pick, end)
        Scheduler.objects.filter(worker=worker).update(status=False)
        finished = drain(options)
        audit_end = datetime.now(UTC) if options.minutes else end
    finally:
        fleet.stop()
    if fleet.wiped_at:
        tell(fleet.wiped_at)
    faulted = Counter(kill.kind for kill in fleet.kills) + Counter({"broker restart": fleet.broker_restarts})
    print("faults: " + ", ".join(f"{count} {kind}" for kind, count in sorted(faulted.items())), flush=True)
    if options.raw:
        raw_data.write(options.raw, fleet.kills, marks)
    killed_at = {kill.pid: kill.at for kill in fleet.kills}
    return audit(options, marks, begin, min(end, audit_end) if options.minutes else end, killed_at, finished)


def prepare(options: argparse.Namespace, worker: object, params: dict[str, object]) -> datetime:
    """Create the schedules or the backlog. Returns the instant from which occurrences are counted."""
    from scheduling.broker import get_broker
    from scheduling.execution.run_now import run_now
    from scheduling.models import Scheduler

    now = datetime.now(UTC)
    begin = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    columns = {"worker": worker, "params": params, "max_retries": 19, "retry_delay_ms": 1000, "retry_multiplier": 1.0}
    if options.minutes:
        for number in range(options.schedules):
            Scheduler.objects.create(schedule="* * * * *", description=f"chaos {number}", **columns)
        return begin
    row = Scheduler.objects.create(schedule="0 0 1 1 *", description="chaos", **columns)
    broker = get_broker()
    for _ in range(options.tasks):
        run_now(row, broker)
    broker.close()
    return now


def faults(options: argparse.Namespace, fleet: Fleet, pick: random.Random, end: datetime) -> None:
    """Cause the faults of the trial.

    Processes are killed at random times. After a third of the trial, the broker is restarted and the queues are
    deleted, if the options ask for this. After two thirds, the broker is restarted again.

    `--minutes` is the length of a trial with schedules. The length of a trial with a backlog is estimated.
    """
    from scheduling.models import SchedulerExecution

    slots = options.consumers * options.concurrency
    span = options.minutes * 60 - 20 if options.minutes else options.tasks * (options.task_seconds + 0.005) / slots
    start = time.monotonic()
    plan = sorted((pick.uniform(1, max(span, 3)), pick.choice("ppcckk"), pick.random()) for _ in range(options.kills))
    restarts = [span * 0.33, span * 0.66] if options.restart_broker else []
    wipes = [span * 0.33] if options.wipe else []
    while plan or restarts or wipes:
        elapsed = time.monotonic() - start
        if restarts and elapsed >= restarts[0]:
            restarts.pop(0)
            subprocess.run(options.restart_broker, shell=True, check=False)
            fleet.broker_restarts += 1
        if wipes and elapsed >= wipes[0]:
            wipes.pop(0)
            fleet.wiped_at = datetime.now(UTC)
            print(f"all queues deleted, with {wipe()} messages in them", flush=True)
        if plan and elapsed >= plan[0][0]:
            strike(options, fleet, pick, *plan.pop(0)[1:])
        if options.tasks and not SchedulerExecution.objects.exclude(state="succeeded").exists():
            break
        time.sleep(0.1)
    while options.minutes and datetime.now(UTC) < end:
        time.sleep(0.2)


def strike(options: argparse.Namespace, fleet: Fleet, pick: random.Random, kind: str, which: float) -> None:
    """Kill one process.

    Args:
        kind: `p` for a producer, `c` for a consumer, `k` for a consumer's child.
        which: a number from 0 to below 1 that chooses the producer or the consumer.
    """
    if kind == "p":
        fleet.kill(f"producer-{int(which * options.producers)}")
    elif kind == "c":
        fleet.kill(f"consumer-{int(which * options.consumers)}")
    else:
        fleet.kill_child(f"consumer-{int(which * options.consumers)}", pick)


def drain(options: argparse.Namespace) -> bool:
    """Wait until no execution waits or runs. Returns False if an execution still waits or runs at the deadline."""
    from scheduling.models import SchedulerExecution

    deadline = time.monotonic() + (120 if options.minutes else 60 + options.tasks * options.task_seconds)
    waiting = ["claimed", "queued", "retrying", "running"]
    while SchedulerExecution.objects.filter(state__in=waiting).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


if __name__ == "__main__":
    sys.exit(main())
