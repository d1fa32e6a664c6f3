"""Finds the work queues in which executions wait."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

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
    return sorted({queue for state in states for queue in _found(state, rows) if queue})


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
    first = _first_queue(state).rows()
    if not first:  # so it is in most sweeps
        return [], True
    return _from(first[0][0], _names(state, SchedulerExecution.objects.all()), most)


@lru_cache(maxsize=len(State))
def _first_queue(state: State) -> Prepared:
    return Prepared(lambda _now: _names(state, SchedulerExecution.objects.all()).values_list("queue")[:1])


def _found(state: State, rows: QuerySet[SchedulerExecution]) -> list[str]:
    names = _names(state, rows)
    return _from(names.first(), names, MOST_QUEUES)[0]


def _names(state: State, rows: QuerySet[SchedulerExecution]) -> QuerySet[Any, Any]:
    return rows.filter(state=state.value).order_by("queue").values_list("queue", flat=True)


def _from(first: object, names: QuerySet[Any, Any], most: int) -> tuple[list[str], bool]:
    """The queues from this one on, at most so many, and whether there are no others."""
    found: list[str] = []
    queue = first
    while queue is not None:
        if not isinstance(queue, str) or queue in found:  # SQLite stores any type
            return found, False
        found.append(queue)
        if len(found) == most:
            return found, False
        queue = names.filter(queue__gt=queue).first()
    return found, True
