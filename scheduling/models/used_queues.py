"""Finds the work queues in which executions wait."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from django.db.models import Q, QuerySet

from scheduling.core.lifecycle import State
from scheduling.models.execution import SchedulerExecution
from scheduling.models.prepared import Prepared

MOST_QUEUES = 300
"""So many work queues of a state are found at most."""


def used_queues(states: Iterable[State], rows: QuerySet[SchedulerExecution] | None = None) -> list[str]:
    """The work queues of the executions in these states, in alphabetical order. A row without a queue is left out.

    Each query reads one entry of the index (state, queue, wake_at, id), however many executions wait. A query for the
    different values would read all of them.

    Args:
        rows: the executions that count; None: all of them.
    """
    rows = SchedulerExecution.objects.all() if rows is None else rows
    return sorted({queue for state in states for queue in _found(state, rows)[0] if queue})


def in_used_queues(state: State) -> Q | None:
    """A condition on the queue that all executions in this state meet; None if no execution is in this state.

    With it, a query for those whose `wake_at` has passed reads ranges of the index (state, queue, wake_at, id). Without
    it, the query would read every execution in this state, and a million events may wait for their time.
    """
    queues, complete = first_queues(state)
    if not complete:
        return Q()
    return Q(queue__in=queues) if queues else None


def first_queues(state: State, most: int = MOST_QUEUES) -> tuple[list[str], bool]:
    """The first work queues of the executions in this state, by name, and whether there are no others."""
    # In most sweeps, no execution is in the state.
    if not _first_queue(state).rows():
        return [], True
    return _found(state, SchedulerExecution.objects.all(), most)


@lru_cache(maxsize=len(State))
def _first_queue(state: State) -> Prepared:
    rows = SchedulerExecution.objects.filter(state=state.value).order_by("queue")
    return Prepared(lambda _now: rows.values_list("queue")[:1])


def _found(state: State, rows: QuerySet[SchedulerExecution], most: int = MOST_QUEUES) -> tuple[list[str], bool]:
    names = rows.filter(state=state.value).order_by("queue").values_list("queue", flat=True)
    found: list[str] = []
    for _ in range(most):
        queue = (names.filter(queue__gt=found[-1]) if found else names).first()
        if queue is None:
            return found, True
        if not isinstance(queue, str) or queue in found:  # SQLite stores any type
            return found, False
        found.append(queue)
    return found, False
