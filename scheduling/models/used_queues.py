"""Finds the work queues in which executions wait."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet

from scheduling.core.lifecycle import State
from scheduling.models.execution import SchedulerExecution

MOST_QUEUES = 300
"""So many work queues of a state are found at most."""


def used_queues(states: Iterable[State], rows: QuerySet[SchedulerExecution] | None = None) -> list[str]:
    """The work queues of the executions in these states, in alphabetical order.

    Each query reads one entry of the index (state, queue, wake_at, id), however many executions wait. A query for the
    different values would read all of them.

    Args:
        rows: the executions that count; None: all of them.
    """
    rows = SchedulerExecution.objects.all() if rows is None else rows
    found: set[str] = set()
    for state in states:
        names = rows.filter(state=state.value).order_by("queue").values_list("queue", flat=True)
        last = ""
        for _ in range(MOST_QUEUES):
            queue = names.filter(queue__gt=last).first()
            if not isinstance(queue, str) or queue == last:  # SQLite stores any type
                break
            found.add(queue)
            last = queue
    return sorted(found)
