"""Checks the result of a chaos trial (`benchmarks.chaos`): the executions, their attempts and the marks must agree.

A mark is a line that a handler writes to a file outside the database when a run starts or ends.
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduling.models import Attempt, SchedulerExecution

EXPLAINED = {"crashed", "interrupted", "failed", "timed_out"}


def audit(
    options: argparse.Namespace,
    marks: Path,
    begin: datetime,
    end: datetime,
    killed_at: dict[int, datetime],
    finished: bool,
) -> int:
    """Print the counts and the faults. Returns the exit code: 0 if there is no fault, otherwise 1."""
    from scheduling.models import Attempt, SchedulerExecution

    rows = list(SchedulerExecution.objects.order_by("pk"))
    attempts: dict[int, list[Attempt]] = {}
    for attempt in Attempt.objects.order_by("execution_id", "number"):
        attempts.setdefault(attempt.execution_id, []).append(attempt)
    faults: list[str] = [] if finished else ["something still waits or runs after the drain"]
    if options.minutes:
        faults += occurrence_faults(rows, begin, end)
    elif len(rows) != options.tasks:
        faults.append(f"{len(rows)} rows for {options.tasks} tasks")
    doubles = 0
    recoveries: list[float] = []
    for row in rows:
        if row.state == "skipped":
            continue
        ended, starts = attempts.get(row.pk, []), marked_starts(marks / f"{row.pk}.txt")
        faults += execution_faults(row, ended, starts)
        doubles += len(starts) > 1
        recoveries += recovery_seconds(ended, killed_at)
    print(f"executions {len(rows)}, started more than once {doubles}, each with its recorded cause")
    if recoveries:
        recoveries.sort()
        middle = recoveries[len(recoveries) // 2]
        print(f"recoveries {len(recoveries)}, median {middle:.1f} s, slowest {recoveries[-1]:.1f} s after the kill")
    for fault in faults[:20]:
        print("FAULT", fault)
    print("PASS" if not faults else f"FAIL: {len(faults)} faults")
    return 0 if not faults else 1


def occurrence_faults(rows: list[SchedulerExecution], begin: datetime, end: datetime) -> Iterator[str]:
    """Yield the faults of the occurrences, and print the counts.

    An occurrence must have exactly one row, unless a skipped row counts it together with other occurrences.

    Every schedule of the trial runs once a minute. The function checks the minutes from `begin` until just before
    `end`.
    """
    from scheduling.models import Scheduler

    minutes = []
    instant = begin
    while instant < end:
        minutes.append(instant)
        instant += timedelta(minutes=1)
    schedulers = list(Scheduler.objects.filter(description__startswith="chaos ").values_list("pk", flat=True))
    on_record = Counter((row.scheduler_id, row.scheduled_at) for row in rows)
    missing = sum(1 for pk in schedulers for minute in minutes if on_record[pk, minute] == 0)
    skipped = [row.missed for row in rows if row.state == "skipped"]
    if missing > max(0, sum(skipped) - len(skipped)):
        yield f"{missing} occurrences are not on record ({sum(skipped)} counted as missed)"
    yield from (f"{key} has {count} rows" for key, count in on_record.items() if count > 1)
    expected = len(minutes) * len(schedulers)
    print(f"occurrences expected {expected}, missing {missing}, counted as missed {sum(skipped)}")


def marked_starts(path: Path) -> list[str]:
    """The lines that the handler wrote when an attempt of one execution started.

    Each line begins with `start` and the number of the attempt.
    """
    return [line for line in path.read_text().splitlines() if line.startswith("start")] if path.exists() else []


def execution_faults(row: SchedulerExecution, ended: list[Attempt], starts: list[str]) -> Iterator[str]:
    """Yield the contradictions between an execution's row, its attempts and the marks of its handler."""
    successes = sum(1 for attempt in ended if attempt.outcome == "succeeded")
    if row.state != "succeeded" or successes != 1:
        yield f"execution {row.pk} is {row.state} with {successes} successes: {row.reason}"
    recorded = [attempt.number for attempt in ended]
    if recorded != list(range(1, row.attempt + 1)):
        yield f"execution {row.pk} stands at attempt {row.attempt} with rows for {recorded}"
    numbers = [int(line.split()[1]) for line in starts]
    if len(set(numbers)) != len(numbers):
        yield f"execution {row.pk}: one attempt started twice: {starts}"
    for former, following in itertools.pairwise(ended):
        if former.outcome not in EXPLAINED:
            yield f"execution {row.pk}: attempt {following.number} follows a {former.outcome} one"


def recovery_seconds(ended: list[Attempt], killed_at: dict[int, datetime]) -> Iterator[float]:
    """Yield the seconds from the kill of an attempt's process to the start of the next attempt."""
    for former, following in itertools.pairwise(ended):
        pids = (int(former.consumer.rsplit("-", 2)[1]), former.pid)
        # A process can run many attempts. Only a kill between the starts of these two attempts counts.
        kills = [killed_at[pid] for pid in pids if pid in killed_at]
        if killed := [at for at in kills if former.started_at <= at <= following.started_at]:
            yield (following.started_at - max(killed)).total_seconds()
