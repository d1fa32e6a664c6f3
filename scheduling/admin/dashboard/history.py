"""History: the last runs of some schedules, and what follows from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import OuterRef, Q, Subquery

from scheduling.admin.dashboard.figures import percentile
from scheduling.core.lifecycle import State
from scheduling.models import Scheduler, SchedulerExecution

RUNS = 30

FAILURES = frozenset({State.FAILED.value, State.DISCARDED.value})
"""A discarded run had failed before: somebody has only taken it out of the inbox."""


class Ran(NamedTuple):
    """An execution, as far as the dashboard needs it."""

    pk: int
    scheduler_id: int
    state: str
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    missed: int

    @property
    def seconds(self) -> float | None:
        """How long its last attempt took."""
        if self.started_at is None or self.finished_at is None:
            return None
        return max(0.0, (self.finished_at - self.started_at).total_seconds())


def last_runs(ids: Collection[int], count: int = RUNS) -> dict[int, list[Ran]]:
    """The newest executions of each schedule, oldest first, in two queries.

    The first finds, for each schedule, the key of its count-th newest execution: as many steps in the
    index (scheduler, -id). The second reads from there on: one short range of the same index for each.
    A window function would number every row of every history before it throws them away.
    """
    runs: dict[int, list[Ran]] = {pk: [] for pk in ids}
    if not ids:
        return runs
    newest = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).order_by("-pk").values("pk")
    edges = (
        Scheduler.objects.filter(pk__in=ids)
        .order_by()
        .annotate(edge=Subquery(newest[count - 1 : count]))
        .values_list("pk", "edge")
    )
    ranges = Q()
    for pk, edge in edges:
        ranges |= Q(scheduler=pk, pk__gte=edge or 0)
    if ranges:
        rows = SchedulerExecution.objects.filter(ranges).order_by().values_list(*Ran._fields)
        for row in sorted(rows):
            runs[row[1]].append(Ran(*row))
    # Rows that were claimed between the two queries are over the count.
    return {pk: found[-count:] for pk, found in runs.items()}


def durations(runs: Iterable[Ran]) -> list[float]:
    """How long those took that succeeded: a failure says little about how long the work takes."""
    return [run.seconds for run in runs if run.state == State.SUCCEEDED.value and run.seconds is not None]


def p95(runs: Iterable[Ran]) -> float | None:
    """What nineteen of twenty successful runs took at most."""
    return percentile(durations(runs), 0.95)


def success_rate(runs: Iterable[Ran]) -> float | None:
    """The share that succeeded, of those that came to an end by themselves."""
    ended = [run.state == State.SUCCEEDED.value for run in runs if run.state in {State.SUCCEEDED.value, *FAILURES}]
    return sum(ended) / len(ended) if ended else None


def failures_in_a_row(runs: Sequence[Ran]) -> int:
    """How many of the newest failed without a success in between; what waits, runs or was skipped says nothing."""
    row = 0
    for run in reversed(runs):
        if run.state in FAILURES:
            row += 1
        elif run.state == State.SUCCEEDED.value:
            break
    return row
