"""Reads the last runs of schedules, and counts how many runs of a schedule failed in a row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from django.db.models import OuterRef, Q, Subquery

from scheduling.core.durations import attempt_end
from scheduling.core.lifecycle import State
from scheduling.models.attempt_ends import attempt_ends
from scheduling.models.execution import SchedulerExecution
from scheduling.models.scheduler import Scheduler
from scheduling.models.visibility import Visibility

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
    recorded_end: datetime | None = None
    """The end of the last attempt according to its own record. It is read only if `finished_at` may be later."""

    @property
    def ended_at(self) -> datetime | None:
        """When the last attempt ended."""
        return attempt_end(self.state, self.finished_at, self.recorded_end)

    @property
    def seconds(self) -> float | None:
        """How many seconds the last attempt took."""
        if self.started_at is None or (ended_at := self.ended_at) is None:
            return None
        return max(0.0, (ended_at - self.started_at).total_seconds())


COLUMNS = tuple(name for name in Ran._fields if name != "recorded_end")


def last_runs(ids: Collection[int], visible: Visibility, count: int = RUNS, ends: bool = True) -> dict[int, list[Ran]]:
    """The newest executions of each schedule that are seen, oldest first.

    The function makes two queries, and both use the index (scheduler, -id). The first query finds the id of each
    schedule's `count`-th newest execution. The second query reads each schedule's executions from that id on. A window
    function would be slower, because it would first number all executions of the schedules. A third query is made only
    if some runs did not succeed: it reads when their last attempts ended.

    Args:
        ids: the ids of the schedules.
        visible: what the user sees. A schedule that has changed its group has executions of several groups.
        count: the maximum number of executions for each schedule.
        ends: whether the durations of runs that did not succeed are needed. If not, the third query is left out.

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
        rows = sorted(visible.executions().filter(ranges).order_by().values_list(*COLUMNS))
        recorded = attempt_ends((row[0], row[2]) for row in rows) if ends else {}
        for row in rows:
            runs[row[1]].append(Ran(*(*row, recorded.get(row[0]))))
    # If an execution was claimed between the two queries, the second query returns more than `count` executions.
    return {pk: found[-count:] for pk, found in runs.items()}


def durations(runs: Iterable[Ran]) -> list[float]:
    """The durations of the successful runs, in seconds.

    Failed runs are left out, because a failure says little about how long the work takes.
    """
    return [run.seconds for run in runs if run.state == State.SUCCEEDED.value and run.seconds is not None]


class HasState(Protocol):
    """A run of which the state is known."""

    @property
    def state(self) -> str: ...


def failures_in_a_row(runs: Sequence[HasState]) -> int:
    """How many runs failed since the last success. Runs that neither failed nor succeeded are ignored."""
    row = 0
    for run in reversed(runs):
        if run.state in FAILURES:
            row += 1
        elif run.state == State.SUCCEEDED.value:
            break
    return row
