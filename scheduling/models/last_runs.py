"""Reads the last runs of schedules, and counts how many runs of a schedule failed in a row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import OuterRef, Q, Subquery

from scheduling.core.lifecycle import State
from scheduling.models.execution import SchedulerExecution
from scheduling.models.scheduler import Scheduler

RUNS = 30

FAILURES = frozenset({State.FAILED.value, State.DISCARDED.value})
"""The states that count as a failure. A discarded execution has failed, too; an operator has only removed it from the
inbox."""


class Ran(NamedTuple):
    """The columns of an execution that the dashboard needs."""

    pk: int
    scheduler_id: int
    state: str
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    missed: int

    @property
    def seconds(self) -> float | None:
        """How many seconds the last attempt took."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0.0, (self.finished_at - self.started_at).total_seconds())


def last_runs(ids: Collection[int], count: int = RUNS) -> dict[int, list[Ran]]:
    """The newest executions of each schedule, oldest first.

    The function makes two queries, and both use the index (scheduler, -id). The first query finds the id of each
    schedule's `count`-th newest execution. The second query reads each schedule's executions from that id on. A window
    function would be slower, because it would first number all executions of the schedules.

    Args:
        ids: the ids of the schedules.
        count: the maximum number of executions for each schedule.

    Returns:
        A list for each id. The list is empty if the schedule has no executions.
    """
    runs: dict[int, list[Ran]] = {pk: [] for pk in ids}
    if not ids:
        return runs
    newest = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).order_by("-pk").values("pk")
    schedulers = Scheduler.objects.filter(pk__in=ids).order_by().annotate(edge=Subquery(newest[count - 1 : count]))
    ranges = Q()
    for pk, edge in schedulers.values_list("pk", "edge"):
        ranges |= Q(scheduler=pk, pk__gte=edge or 0)
    if ranges:
        rows = SchedulerExecution.objects.filter(ranges).order_by().values_list(*Ran._fields)
        for row in sorted(rows):
            runs[row[1]].append(Ran(*row))
    # If an execution was claimed between the two queries, the second query returns more than `count` executions.
    return {pk: found[-count:] for pk, found in runs.items()}


def failures_in_a_row(runs: Sequence[Ran]) -> int:
    """How many runs failed since the last success. Runs that neither failed nor succeeded are ignored."""
    row = 0
    for run in reversed(runs):
        if run.state in FAILURES:
            row += 1
        elif run.state == State.SUCCEEDED.value:
            break
    return row
