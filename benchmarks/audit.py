"""Audit a chaos run: rows, attempts and marks outside the database must tell one story."""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

EXPLAINED = {"crashed", "interrupted", "failed", "timed_out"}


def audit(
    options: argparse.Namespace,
    marks: Path,
    begin: datetime,
    end: datetime,
    killed_at: dict[int, datetime],
    finished: bool,
) -> int:
    """Print what holds and what does not; 0 when all of it holds."""
    from scheduling.models import Attempt, Scheduler, SchedulerExecution

    rows = list(SchedulerExecution.objects.order_by("pk"))
    attempts: dict[int, list[Attempt]] = {}
    for attempt in Attempt.objects.order_by("execution_id", "number"):
        attempts.setdefault(attempt.execution_id, []).append(attempt)
    faults: list[str] = [] if finished else ["something still waits or runs after the drain"]

    expected = options.tasks
    if options.minutes:
        minutes = []
        instant = begin
        while instant < end:
            minutes.append(instant)
            instant += timedelta(minutes=1)
        schedulers = list(Scheduler.objects.filter(description__startswith="chaos ").values_list("pk", flat=True))
        expected = len(minutes) * len(schedulers)
        on_record = Counter((row.scheduler_id, row.scheduled_at) for row in rows)
        missing = sum(1 for pk in schedulers for minute in minutes if on_record[pk, minute] == 0)
        skipped = sum(row.missed for row in rows if row.state == "skipped")
        if missing > max(0, skipped - sum(1 for row in rows if row.state == "skipped")):
            faults.append(f"{missing} occurrences are not on record ({skipped} counted as missed)")
        faults += [f"{key} has {count} rows" for key, count in on_record.items() if count > 1]
        print(f"occurrences expected {expected}, missing {missing}, counted as missed {skipped}")
    elif len(rows) != expected:
        faults.append(f"{len(rows)} rows for {expected} tasks")

    doubles = 0
    recoveries: list[float] = []
    for row in rows:
        if row.state == "skipped":
            continue
        ended = attempts.get(row.pk, [])
        path = marks / f"{row.pk}.txt"
        starts = [line for line in path.read_text().splitlines() if line.startswith("start")] if path.exists() else []
        successes = sum(1 for each in ended if each.outcome == "succeeded")
        if row.state != "succeeded" or successes != 1:
            faults.append(f"execution {row.pk} is {row.state} with {successes} successes: {row.reason}")
        if [each.number for each in ended] != list(range(1, row.attempt + 1)):
            faults.append(
                f"execution {row.pk} stands at attempt {row.attempt} with rows for {[e.number for e in ended]}"
            )
        numbers = [int(line.split()[1]) for line in starts]
        if len(set(numbers)) != len(numbers):
            faults.append(f"execution {row.pk}: one attempt started twice: {starts}")
        if len(starts) > 1:
            doubles += 1
        for one, following in itertools.pairwise(ended):
            if one.outcome not in EXPLAINED:
                faults.append(f"execution {row.pk}: attempt {following.number} follows a {one.outcome} one")
            pid = int(one.consumer.rsplit("-", 2)[1])
            # Its consumer may have been killed later, for another run.
            kills = [killed_at[each] for each in (pid, one.pid) if each in killed_at]
            if killed := [at for at in kills if one.started_at <= at <= following.started_at]:
                recoveries.append((following.started_at - max(killed)).total_seconds())
    print(f"executions {len(rows)}, started more than once {doubles}, each with its recorded cause")
    if recoveries:
        recoveries.sort()
        middle = recoveries[len(recoveries) // 2]
        print(f"recoveries {len(recoveries)}, median {middle:.1f} s, slowest {recoveries[-1]:.1f} s after the kill")
    for fault in faults[:20]:
        print("FAULT", fault)
    print("PASS" if not faults else f"FAIL: {len(faults)} faults")
    return 0 if not faults else 1
