"""Writes what a chaos trial (`benchmarks.chaos`) saw, so that a stranger can count again."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.chaos_fleet import Kill

EXECUTIONS = ("pk", "scheduler_id", "execution_key", "scheduled_at", "state", "missed", "attempt")
ATTEMPTS = (
    "execution_id",
    "number",
    "consumer",
    "pid",
    "started_at",
    "finished_at",
    "outcome",
    "signal",
    "error_class",
)


def write(folder: Path, kills: Sequence[Kill], marks: Path) -> None:
    """Write `kills.csv`, `executions.csv`, `attempts.csv` and `marks.csv`. Times are in UTC.

    Args:
        folder: is made if it does not exist. Files of an earlier trial are replaced.
        kills: what was killed, in its order.
        marks: the folder of the files that the handlers wrote, one for each execution.

    Raises:
        OSError: the files cannot be written.
    """
    from scheduling.models import Attempt, SchedulerExecution

    folder.mkdir(parents=True, exist_ok=True)
    _table(folder / "kills.csv", ("at", "kind", "pid"), ((kill.at, kill.kind, kill.pid) for kill in kills))
    executions = SchedulerExecution.objects.order_by("pk").values_list(*EXECUTIONS)
    _table(folder / "executions.csv", EXECUTIONS, executions.iterator())
    attempts = Attempt.objects.order_by("execution_id", "number").values_list(*ATTEMPTS)
    _table(folder / "attempts.csv", ATTEMPTS, attempts.iterator())
    lines = (
        (path.stem, *line.split())
        for path in sorted(marks.iterdir(), key=lambda path: int(path.stem))
        for line in path.read_text().splitlines()
    )
    _table(folder / "marks.csv", ("execution_id", "mark", "attempt", "pid"), lines)


def _table(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([_cell(value) for value in row] for row in rows)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
