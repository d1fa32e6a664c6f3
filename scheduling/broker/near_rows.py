"""Finds waiting executions of some origins near the heads of work queues, without locks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduling.broker.handler_rows import Handlers, runs_of
from scheduling.core.lifecycle import State
from scheduling.core.origin import Origin, Wanted
from scheduling.models import SchedulerExecution
from scheduling.processes import left_out

LOOK_AHEAD = 1_000
"""So many rows at the head of a work queue are looked at, for each of the two states."""

FURTHER = 32
"""So many rows more than are wanted are read at first. Usually they hold all that is wanted."""


def near_rows(
    queues: Sequence[str], limit: int, now: datetime, wanted: Wanted, handlers: Handlers
) -> QuerySet[SchedulerExecution, Any] | None:
    """The first `limit` waiting rows whose origin is wanted, as a queryset by their primary keys; None if there are no
    such rows.

    A long backlog of other runs is not read: only the first `LOOK_AHEAD` rows are looked at.
    """
    keys: list[int] = []
    for queue in queues:
        for state in (State.RETRYING, State.QUEUED):
            keys += _keys(state, queue, limit - len(keys), now, wanted, handlers)
    if not keys:
        return None
    waiting = [State.QUEUED.value, State.RETRYING.value]
    return SchedulerExecution.objects.filter(pk__in=sorted(keys), state__in=waiting, wake_at__lte=now).order_by("pk")


def _keys(state: State, queue: str, limit: int, now: datetime, wanted: Wanted, handlers: Handlers) -> list[int]:
    if limit < 1:
        return []
    due = SchedulerExecution.objects.filter(state=state.value, queue=queue, wake_at__lte=now)
    rows = left_out.executions.without(runs_of(due, handlers)).order_by("wake_at", "id")
    columns: QuerySet[Any, Any] = rows.values_list("pk", *Origin._fields)
    size = limit + FURTHER
    first = list(columns[:size])
    found = [pk for pk, *origin in first if wanted(Origin(*origin))]
    if len(found) < limit and len(first) == size < LOOK_AHEAD:
        found += [pk for pk, *origin in columns[size:LOOK_AHEAD] if wanted(Origin(*origin))]
    return found[:limit]
