"""Measures the memory and the time that a large report needs, for each format.

    python -m benchmarks.reports --rows 1000000
    python -m benchmarks.reports --rows 100000 --only xlsx

A consumer runs the report `tests.rows`, which has five columns, once for each format. The memory is the highest
resident memory of the child that makes the report. It contains the pages that the child shares with the forkserver.

Exit code 0 means that each child needed less than 100 MB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.chaos_fleet import Fleet, children
from benchmarks.output import peak_megabytes
from benchmarks.site import enter

MOST_MEGABYTES = 100.0


@dataclass
class Made:
    """What one report has cost."""

    format: str
    rows: int
    seconds: float
    peak_megabytes: float
    file_megabytes: float


def main() -> int:
    """Run the reports and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reports")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="one format")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reports-") as name:
        enter(Path(name), options.database)
        from reports.renderers import FORMATS

        fleet = Fleet(Path(name))
        fleet.start("consumer", "run_worker")
        made = []
        try:
            print(f"{'format':8} {'rows':>10} {'seconds':>8} {'peak MB':>8} {'file MB':>8}", flush=True)
            for format_ in FORMATS:
                if options.only in ("", format_):
                    made.append(make(fleet, format_, options.rows))
        finally:
            fleet.stop()
    return 0 if all(report.peak_megabytes < MOST_MEGABYTES for report in made) else 1


def make(fleet: Fleet, format_: str, rows: int) -> Made:
    """Run the report in one format, print a line of the table, and delete the file.

    Raises:
        AssertionError: the run did not succeed.
    """
    from scheduling.broker import get_broker
    from scheduling.execution.artefacts import remove
    from scheduling.execution.run_now import run_now
    from scheduling.models import Artefact, Attempt

    execution = run_now(schedule(format_, rows), get_broker(), by="benchmark")
    peaks = watch(fleet, execution)
    attempt = Attempt.objects.get(execution=execution)
    assert attempt.outcome == "succeeded", attempt.error_message
    artefact = Artefact.objects.get(execution=execution)
    assert artefact.rows == rows
    seconds = (attempt.finished_at - attempt.started_at).total_seconds()
    found = Made(format_, rows, seconds, peaks[attempt.pid or 0], artefact.size / 1e6)
    print(
        f"{format_:8} {found.rows:10,} {found.seconds:8.1f} {found.peak_megabytes:8.1f} {found.file_megabytes:8.1f}",
        flush=True,
    )
    remove([artefact])
    return found


def schedule(format_: str, rows: int) -> Any:
    """Make a schedule of the report with so many rows in this format. It is never due."""
    from reports.models import Report
    from tests.factories import SchedulerFactory

    options = {"delivery": {"format": format_}}
    report = Report.objects.get(controller="tests.rows")
    return SchedulerFactory(rare=True, worker=None, report=report, params={"rows": rows, "options_interface": options})


def watch(fleet: Fleet, execution: Any) -> dict[int, float]:
    """Wait until the execution has ended. Returns the highest resident memory of each child, in MB, by process id."""
    peaks: dict[int, float] = {}
    consumer = fleet.processes["consumer"]
    ended = looked = 0.0
    while not ended:
        if consumer.poll() is not None:
            raise AssertionError((fleet.directory / "consumer.log").read_text())
        for pid in [pid for server in children(consumer.pid) for pid in children(server)]:
            try:
                peaks[pid] = peak_megabytes(pid)
            except (OSError, AssertionError):
                continue  # the child has just ended
        if time.monotonic() - looked > 0.5:
            looked = time.monotonic()
            execution.refresh_from_db(fields=["finished_at"])
            ended = looked if execution.finished_at is not None else 0.0
        time.sleep(0.02)
    return peaks


if __name__ == "__main__":
    sys.exit(main())
