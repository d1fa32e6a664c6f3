"""The rows that the checks and the dashboard watch. One statement counts all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import F, Q, QuerySet

from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.service import OFTEN, STEADY
from scheduling.models import Process, RefusedRow, Scheduler, SchedulerExecution
from scheduling.models.plan import PlanState

SILENT_REMEMBERED = timedelta(days=1)
"""How long a silent process is reported. Sweeps recover the runs of a silent process much earlier."""
STUCK_LONG = timedelta(minutes=2)
PAUSED_LONG = timedelta(days=1)

Rows = Callable[[datetime], QuerySet[Any]]
"""Returns the rows at an instant."""


def in_state(*states: State) -> Rows:
    """The executions in these states."""
    return lambda _now: SchedulerExecution.objects.in_state(*states)


def waiting_in(queue: SchedulerExecution.Queue, now: datetime) -> QuerySet[SchedulerExecution]:
    """The queued executions that should have started, the oldest first."""
    return SchedulerExecution.objects.overdue(State.QUEUED, now).filter(queue=queue.value)


def stuck_in(state: State, now: datetime) -> QuerySet[SchedulerExecution]:
    """The executions whose time in this state has been over for `STUCK_LONG`."""
    return SchedulerExecution.objects.overdue(state, now - STUCK_LONG)


def fell_silent(now: datetime) -> QuerySet[Process]:
    """The processes that fell silent in the last day.

    A killed process stays silent for ever. After a day, it no longer needs attention and is left out.
    """
    return Process.objects.silent(now).filter(heartbeat_at__gte=now - SILENT_REMEMBERED).order_by("-heartbeat_at")


def set_aside(_now: datetime) -> QuerySet[Scheduler]:
    """The schedules that cannot be planned."""
    return Scheduler.objects.filter(plan_state=PlanState.SET_ASIDE).order_by("pk")


def without_next_run(_now: datetime) -> QuerySet[Scheduler]:
    """The active schedules without a next run."""
    return Scheduler.objects.filter(plan_state=PlanState.WITHOUT_NEXT_RUN).order_by("pk")


def overdue(now: datetime) -> QuerySet[Scheduler]:
    """The schedules that are due and not claimed, the oldest first."""
    return Scheduler.objects.overdue(now)


def paused_long(now: datetime) -> QuerySet[Scheduler]:
    """The schedules that have been paused for more than `PAUSED_LONG`."""
    return Scheduler.objects.filter(status=False, paused_at__lt=now - PAUSED_LONG).order_by("-paused_at", "pk")


def services(_now: datetime) -> QuerySet[Scheduler]:
    """The active services. They need a standalone consumer."""
    return Scheduler.objects.filter(status=True, stay_alive=True)


def unsteady(now: datetime) -> QuerySet[SchedulerExecution]:
    """The open runs of services that have ended `OFTEN` times in a row, the worst first."""
    standalone = SchedulerExecution.objects.in_state(*OPEN_STATES).filter(queue=SchedulerExecution.Queue.STANDALONE)
    # The comparison subtracts nothing: MariaDB and MySQL refuse a negative result of columns without a sign.
    often = standalone.filter(attempt__gt=F("retry_base") + OFTEN, scheduler__stay_alive=True)
    steady = Q(state=State.RUNNING.value, started_at__lte=now - STEADY)
    return often.exclude(steady).annotate(restarts=F("attempt") - F("retry_base") - 1).order_by("-restarts", "pk")


def refused(now: datetime) -> QuerySet[RefusedRow]:
    """The rows that the database refuses to change."""
    return RefusedRow.objects.present(now)


queued = in_state(State.CLAIMED, State.QUEUED)
running = in_state(State.RUNNING)
retrying = in_state(State.RETRYING)
failed = in_state(State.FAILED)
claimed_long = partial(stuck_in, State.CLAIMED)
running_long = partial(stuck_in, State.RUNNING)
waiting: dict[SchedulerExecution.Queue, Rows] = {
    # Each queue is counted on its own, because the index is (state, queue, wake_at).
    queue: partial(waiting_in, queue)
    for queue in SchedulerExecution.Queue
}

WATCHED: tuple[Rows, ...] = (
    queued,
    running,
    retrying,
    failed,
    claimed_long,
    running_long,
    *waiting.values(),
    fell_silent,
    set_aside,
    without_next_run,
    overdue,
    paused_long,
    services,
    unsteady,
    refused,
)
