"""Measures runs of a limited handler beside the same runs without a limit, in one run.

python -m benchmarks.limits --database mysql://... --broker amqp://guest:guest@127.0.0.1:5672/ --runs 5000 --keys 50
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.history import clear
from benchmarks.site import ROOT, enter
from benchmarks.wipe import wipe

CONSUMERS, SLOTS = 2, 8
QUEUE = "limits"
"""The main queue has batch handlers of the tests, and for their sake a consumer has hundreds of messages brought, which
would wait beside an idle consumer."""

WARM_RUNS = 50
LONGEST_SECONDS = 600


def main() -> int:
    """Measure and print each line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--broker", default="database://")
    parser.add_argument("--runs", type=int, default=5_000)
    parser.add_argument("--keys", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="limits-") as name:
        enter(Path(name), options.database, options.broker)
        if not options.broker.startswith("database:"):
            wipe()
        clear()
        worker = [sys.executable, "manage.py", "run_worker", "--concurrency", str(SLOTS), "--queue", QUEUE]
        commands = [worker] * CONSUMERS + [[sys.executable, "manage.py", "run_scheduler"]]
        processes = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) for command in commands]
        try:
            for handler in ("tests.noop_with_region", "tests.noop_of_each_key"):
                rate(handler, WARM_RUNS, options.keys)
            for _ in range(options.repeat):
                free = rate("tests.noop_with_region", options.runs, options.keys)
                limited = rate("tests.noop_of_each_key", options.runs, options.keys)
                line = f"without a limit {free:6.0f}/s, with {options.keys} keys {limited:6.0f}/s"
                print(f"{line}, ratio {limited / free:.2f}", flush=True)
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(60)
        clear()
    return 0


def rate(handler: str, runs: int, keys: int) -> float:
    """Ask for runs, wait for their end, and return how many ended a second."""
    from scheduling.api import Asked, run_many
    from scheduling.core.lifecycle import OPEN_STATES
    from scheduling.models import SchedulerExecution

    pick = random.Random(1)
    asked = [Asked(handler, {"region": f"r{pick.randrange(keys)}"}, queue=QUEUE) for _ in range(runs)]
    begin = time.monotonic()
    run_many(asked)
    while SchedulerExecution.objects.in_state(*OPEN_STATES).exists():
        if time.monotonic() - begin > LONGEST_SECONDS:
            raise SystemExit(f"{handler}: not over after {LONGEST_SECONDS} s")
        time.sleep(0.1)
    return runs / (time.monotonic() - begin)


if __name__ == "__main__":
    raise SystemExit(main())
