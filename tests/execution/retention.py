"""Old executions for the tests of retention."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone as clock

from scheduling.models import Attempt, Scheduler, SchedulerExecution
from tests.factories import ManualExecutionFactory, OutputFactory, SchedulerFactory

OLD = timedelta(days=40)


def make_executions(
    state: str, number: int = 1, age: timedelta = OLD, scheduler: Scheduler | None = None, **columns: Any
) -> list[SchedulerExecution]:
    """Make executions of one age, with one attempt and one piece of output each.

    Their schedule has a newer execution. Otherwise the newest of them would be the last result of the schedule.

    Args:
        scheduler: the schedule, which needs a newer execution; by default a new schedule with one.
    """
    then = clock.now() - age
    if scheduler is None and "scheduler_id" not in columns:
        scheduler = SchedulerFactory(rare=True)
    times = {"scheduled_at": then, "executed_at": then, "finished_at": then, "wake_at": None}
    rows = ManualExecutionFactory.bulk(number, scheduler=scheduler, state=state, **(times | columns))
    for row in rows:
        Attempt.objects.create(
            execution=row, number=1, started_at=then, finished_at=then, consumer="x", outcome="succeeded"
        )
        OutputFactory(execution=row, text="x\n", created_at=then)
    if scheduler is not None:
        newer(scheduler)
    return rows


def newer(scheduler: Scheduler) -> SchedulerExecution:
    """Give a schedule a run that has just succeeded."""
    row: SchedulerExecution = ManualExecutionFactory(
        scheduler=scheduler, state="succeeded", finished_at=clock.now(), wake_at=None
    )
    return row


def left(rows: list[SchedulerExecution]) -> list[int]:
    """Return the primary keys of those executions that still exist, in order."""
    there = SchedulerExecution.objects.filter(pk__in=[row.pk for row in rows])
    return sorted(there.values_list("pk", flat=True))


def keys(rows: list[SchedulerExecution]) -> list[int]:
    """Return the primary keys of executions."""
    return [row.pk for row in rows]
