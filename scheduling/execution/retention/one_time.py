"""Removes spent one-time schedules. Their executions stay, without a schedule."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from scheduling.execution.retention.removal import ENDED_STATES
from scheduling.execution.retention.windows import savepoint
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.author import Author, AuthorKind, authored
from scheduling.models.plan import FIRST_INSTANT, PlanState
from scheduling.processes.database import is_away

log = get_logger(__name__)

_PLANNED = (PlanState.CURRENT.value, PlanState.WITHOUT_NEXT_RUN.value)


def spent(before: datetime) -> QuerySet[Scheduler]:
    """The one-time schedules whose date has passed before this instant, and that will not run again by themselves.

    A schedule is kept while one of its executions waits, runs or is in the failed inbox. It is also kept while its
    occurrence is still due, or while it cannot be planned.
    """
    unfinished = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).exclude(state__in=ENDED_STATES)
    passed = Scheduler.objects.filter(date_time__gte=FIRST_INSTANT, date_time__lt=before, schedule="")
    return passed.filter(~Exists(unfinished), next_run_at__isnull=True, plan_state__in=_PLANNED).order_by("pk")


def remove_spent(keys: list[int], before: datetime, *, dry_run: bool) -> int:
    """Remove schedules that are spent. Returns how many. A schedule that has got a new date meanwhile stays.

    Each schedule is removed in its own transaction, because it may have many executions, which lose their schedule.
    """
    return sum(_remove(pk, before, dry_run) for pk in keys)


def _remove(pk: int, before: datetime, dry_run: bool) -> int:
    try:
        with savepoint():
            # Plain SQL may have written a date that Python cannot read. Such a schedule is kept.
            (date,) = Scheduler.objects.filter(pk=pk).values_list("date_time", flat=True)
            if date is None:
                return 0
            if dry_run:
                return 1
            with authored(Author(AuthorKind.SYSTEM, "cleanup_executions")), transaction.atomic():
                row = spent(before).filter(pk=pk).select_for_update().first()
                return 0 if row is None else row.delete()[1].get(Scheduler._meta.label, 0)
    except Exception as error:
        if is_away(error):
            raise
        log.warning("Retention keeps schedule %s: %s", pk, error)
        return 0
