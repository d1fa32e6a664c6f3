"""Measure classic and quorum queues beside each other: publishing, claims, and runs a second.

    python -m benchmarks.queue_types --broker amqp://guest:guest@127.0.0.1:5672/ --repeat 3

The two types are measured in alternation, each in a process and a database of its own, so that a slow minute of the
machine meets both. With the URL of a cluster, the queues are on its nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.__main__ import claim_seconds, published_a_second, rate
from benchmarks.site import ROOT, enter
from benchmarks.wipe import wipe
from scheduling.core.setting_values import QUEUE_TYPES

MEASURES: list[tuple[str, Callable[[], float]]] = [
    ("messages/s published and confirmed", lambda: published_a_second(20_000)),
    ("s to claim and publish 10,000", lambda: claim_seconds(10_000)),
    ("no-op runs/s, concurrency 8", lambda: rate("tests.noop", 8, 2_000)),
]


def main() -> int:
    """Run both types and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queue_types")
    parser.add_argument("--broker", required=True)
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return measure(options.one, options.database, options.broker)
    values: dict[tuple[str, str], list[float]] = {}
    for _ in range(options.repeat):
        for queue_type in QUEUE_TYPES:
            for title, value in in_a_process(queue_type).items():
                values.setdefault((title, queue_type), []).append(value)
    print(f"{'measured':40} " + " ".join(f"{name:28}" for name in QUEUE_TYPES))
    for title, _ in MEASURES:
        print(f"{title:40} " + " ".join(f"{shown(values[title, name]):28}" for name in QUEUE_TYPES))
    return 0


def in_a_process(queue_type: str) -> dict[str, float]:
    """Measure one type in a new process."""
    command = [sys.executable, "-m", "benchmarks.queue_types", *sys.argv[1:], "--one", queue_type]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=os.environ)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(queue_type: str, database: str, broker: str) -> int:
    """Measure one type in this process and print the values as JSON."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        enter(Path(name), database, broker, CRON_QUEUE_TYPE=queue_type)
        values: dict[str, float] = {}
        for title, measured in MEASURES:
            wipe()  # messages of the measurement before would be foreign messages of this one
            values[title] = measured()
        wipe()
    print(json.dumps(values))
    return 0


def shown(values: list[float]) -> str:
    """The median with the least and the most."""
    return f"{statistics.median(values):.4g} [{min(values):.4g}-{max(values):.4g}]"


if __name__ == "__main__":
    sys.exit(main())
