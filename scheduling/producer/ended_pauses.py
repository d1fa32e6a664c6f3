"""Wakes the runs that waited for a pause, when the pause has ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache

from django.db import connection
from django.db.models import Q, QuerySet

from scheduling.broker.handler_rows import runs_of
from scheduling.core.lifecycle import State
from scheduling.core.pauses import LONGEST_WAIT, Scope, WorkPause
from scheduling.core.queues import work_queues
from scheduling.execution.place_rows import not_in_line
from scheduling.execution.work_pauses import pauses_now, rules_of
from scheduling.logs import get_logger
from scheduling.models import Pause, SchedulerExecution
from scheduling.models.prepared import Prepared
from scheduling.models.used_queues import used_queues
from scheduling.processes import left_out
from scheduling.processes.set_aside import handle_each

log = get_logger(__name__)

LATE_ARRIVALS = timedelta(seconds=60)
"""A pause that has ended is looked at for so long. A consumer may not know yet that it has ended, so a run may begin to
wait for it afterwards."""

ROWS_PER_SWEEP = 1_000

_MET = (State.CLAIMED, State.QUEUED)
"""The states of a run that waits for a pause."""


@cache
def _ended(_vendor: str) -> Prepared:
    return Prepared(lambda now: Pause.objects.filter(ends_at__lte=now).order_by("pk").values_list("pk"))


def wake_after_pauses(now: datetime) -> int:
    """Offer the runs that have waited for a pause which has ended. Returns how many. Spent pauses are deleted.

    A run that is not found here is offered again after `LONGEST_WAIT` at the latest.
    """
    keys = [pk for (pk,) in _ended(connection.vendor).rows(now)]
    if not keys:
        return 0
    rows = Pause.objects.filter(pk__in=keys)
    others = pauses_now(now)
    woken = sum(_wake(pause, others, now) for pause in rules_of(rows))
    rows.filter(ends_at__lt=now - LATE_ARRIVALS).delete()
    return woken


def _wake(pause: WorkPause, others: Iterable[WorkPause], now: datetime) -> int:
    woken = 0
    for state in _MET:
        found = _waiting(pause, others, state, now).order_by("wake_at").values_list("pk", flat=True)
        woken += handle_each(sorted(found[:ROWS_PER_SWEEP]), lambda pk, state=state: _offer(pk, state, now), now)  # type: ignore[misc]
    if woken:
        log.info("A pause has ended: %s", pause.sentence(), extra={"count": woken})
    return woken


def _waiting(
    pause: WorkPause, others: Iterable[WorkPause], state: State, now: datetime
) -> QuerySet[SchedulerExecution]:
    """The runs that have met a pause, and that no other pause stops."""
    queues = set(work_queues([pause.name]) if pause.scope is Scope.QUEUE else used_queues([state]))
    rows: QuerySet[SchedulerExecution] = SchedulerExecution.objects.filter(state=state.value)
    for other in others:
        if other.scope is Scope.SITE:
            return rows.none()
        if other.scope is Scope.QUEUE:
            queues -= set(work_queues([other.name]))
    rows = rows.filter(
        queue__in=queues, wake_at__gt=now, wake_at__lte=now + LONGEST_WAIT, deferred_at__isnull=False
    )  # fmt: skip
    if pause.scope is Scope.HANDLER:
        rows = runs_of(rows, frozenset({(pause.type, pause.name)}))
    stopped = frozenset((other.type, other.name) for other in others if other.scope is Scope.HANDLER)
    if stopped:
        rows = rows.exclude(pk__in=runs_of(rows, stopped).values("pk"))
    return left_out.executions.without(not_in_line(rows))


def _offer(pk: int, state: State, now: datetime) -> None:
    waits = Q(pk=pk, state=state.value, wake_at__gt=now, deferred_at__isnull=False)
    SchedulerExecution.objects.filter(waits).update(wake_at=now, deferred_at=None, reason="")
