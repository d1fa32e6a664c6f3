"""Measure the price of a run that prints much: what it costs the consumer and the runs beside it.

    python -m benchmarks.output --seconds 60 --megabytes-a-second 10
    python -m benchmarks.output --database postgres://… --broker amqp://…

A consumer with two slots runs no-op runs without a pause. The other slot has a run of its own in three phases, one
after the other: it sleeps, it prints, and it sleeps again. So the neighbours have one slot in every phase. Each line
that is printed begins with the time, which says how late the newest stored line is.

Exit code 0 means that the neighbours have kept at least half of their rate, and that the newest stored line was never
older than two seconds.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.chaos_fleet import Fleet
from benchmarks.history import clear
from benchmarks.site import enter

BACKLOG = 400
"""So many no-op runs always wait."""

LEAST_SHARE = 0.5
LATEST_SECONDS = 2.0
EDGE = timedelta(seconds=1)
"""Left out at both ends of a phase."""

_PRINTED_AT = re.compile(r"OUT (\d+\.\d+) ")


@dataclass
class Phase:
    """What was measured while one run used the other slot."""

    execution: Any
    cpu_seconds: float = 0.0
    elapsed: float = 0.0
    peak_megabytes: float = 0.0
    late: list[float] = field(default_factory=list)
    neighbours: float = 0.0
    """Runs per second of the no-op runs."""


def main() -> int:
    """Run the phases and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.output")
    parser.add_argument("--database", default="", help="default: SQLite in a folder of its own")
    parser.add_argument("--broker", default="database://")
    parser.add_argument("--megabytes-a-second", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the run prints")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="output-") as name:
        enter(Path(name), options.database, options.broker)
        clear()
        trial = Trial(Path(name))
        try:
            quiet = {"handler": "tests.mark", "seconds": options.seconds / 2}
            pour = {"handler": "tests.pour", "seconds": options.seconds}
            before = trial.phase(**quiet)
            loud = trial.phase(**pour, megabytes_a_second=options.megabytes_a_second)
            after = trial.phase(**quiet)
        finally:
            trial.stop()
        good = report(Path(name), before, loud, after)
        clear()
    return 0 if good else 1


class Trial:
    """One consumer with two slots, and no-op runs that always wait."""

    def __init__(self, directory: Path) -> None:
        from scheduling.broker import get_broker
        from tests.factories import SchedulerFactory

        self.directory = directory
        self.broker = get_broker()
        self.broker.declare()
        self.noop = SchedulerFactory(rare=True, handler="tests.noop")
        self.fleet = Fleet(directory)
        self.fleet.start("consumer", "run_worker", "--concurrency", "2")

    @property
    def pid(self) -> int:
        """The process id of the supervisor."""
        return self.fleet.processes["consumer"].pid

    def stop(self) -> None:
        """Stop the consumer."""
        self.fleet.stop()
        self.broker.close()

    def phase(self, handler: str, **params: object) -> Phase:
        """Run a handler in one slot until it ends, and no-op runs in the other slot."""
        from tests.factories import SchedulerFactory

        row = SchedulerFactory(rare=True, handler=handler, params={"directory": str(self.directory), **params})
        phase = Phase(self.put(row, 1)[0])
        while self.state(phase) != "running":
            self.feed()
        (Path("/proc") / str(self.pid) / "clear_refs").write_text("5")  # the peak of the memory begins anew
        cpu, begin = cpu_seconds(self.pid), time.monotonic()
        while self.state(phase) == "running":
            self.feed()
            if (printed := newest(phase.execution.pk)) is not None:
                phase.late.append(time.time() - printed)
        phase.cpu_seconds, phase.elapsed = cpu_seconds(self.pid) - cpu, time.monotonic() - begin
        phase.peak_megabytes = peak_megabytes(self.pid)
        phase.execution.refresh_from_db()
        phase.neighbours = neighbours(phase.execution)
        return phase

    def feed(self) -> None:
        """Add no-op runs if few of them wait, and pause."""
        from scheduling.models import SchedulerExecution

        waiting = SchedulerExecution.objects.filter(state__in=("claimed", "queued")).count()
        if waiting < BACKLOG:
            self.put(self.noop, BACKLOG)
        time.sleep(0.1)

    def put(self, row: Any, count: int) -> list[Any]:
        """Make and publish executions of a schedule."""
        from scheduling.execution.publish import publish
        from tests.factories import ManualExecutionFactory

        columns = {} if self.broker.embedded else {"state": "claimed", "published_at": None}
        executions: list[Any] = ManualExecutionFactory.bulk(count, scheduler=row, **columns)
        publish(executions, self.broker)
        return executions

    def state(self, phase: Phase) -> str:
        """The state of the phase's execution."""
        from scheduling.models import SchedulerExecution

        return str(SchedulerExecution.objects.values_list("state", flat=True).get(pk=phase.execution.pk))


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_megabytes(pid: int) -> float:
    """The highest resident memory of a process, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def newest(execution_id: int) -> float | None:
    """When the newest stored line of an execution was printed, in epoch seconds; None if no line is stored."""
    from django.db.models.functions import Right

    from scheduling.models import Output

    rows = Output.objects.filter(execution=execution_id).order_by("-attempt", "-sequence")
    found = _PRINTED_AT.findall(rows.values_list(Right("text", 300), flat=True).first() or "")
    return float(found[-1]) if found else None


def neighbours(execution: Any) -> float:
    """How many no-op runs ended per second while this execution ran."""
    from scheduling.models import Attempt

    begin, end = execution.started_at + EDGE, execution.finished_at - EDGE
    count = Attempt.objects.filter(finished_at__gte=begin, finished_at__lt=end).count()
    return count / (end - begin).total_seconds()


def report(directory: Path, before: Phase, loud: Phase, after: Phase) -> bool:
    """Print the figures. Returns whether they are good enough."""
    from django.db.models import Max, Min, Sum
    from django.db.models.functions import Length

    from scheduling.models import Output

    printed, seconds = map(float, (directory / f"{loud.execution.pk}.txt").read_text().split())
    rows = Output.objects.filter(execution=loud.execution)
    stored = rows.aggregate(characters=Sum(Length("text")), first=Min("pk"), last=Max("pk"))
    written = stored["last"] - stored["first"] + 1  # no other run prints, so the keys have no gaps
    quiet = statistics.mean([before.neighbours, after.neighbours])
    share = loud.neighbours / quiet
    print(f"printed                    {printed / 1e6:.0f} MB in {seconds:.0f} s, {printed / seconds / 1e6:.2f} MB/s")
    print(f"rows written, and kept     {written}, {rows.count()} with {stored['characters']} characters")
    print(f"newest stored line is late {statistics.median(loud.late):.2f} s (median), {max(loud.late):.2f} s (most)")
    for title, phase in (("before", before), ("printing", loud), ("after", after)):
        load = 100 * phase.cpu_seconds / phase.elapsed
        print(
            f"{title:8} neighbours {phase.neighbours:6.1f} runs/s, supervisor {load:3.0f} % of a processor, "
            f"peak {phase.peak_megabytes:.0f} MB"
        )
    print(f"neighbours keep            {100 * share:.0f} % of their rate", flush=True)
    return share >= LEAST_SHARE and max(loud.late) <= LATEST_SECONDS


if __name__ == "__main__":
    sys.exit(main())
