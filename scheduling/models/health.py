"""Finds the health of schedules in the database, so that a list can show it, filter by it and sort by it."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Least

from scheduling.core.health import RESULTS, Health
from scheduling.core.lifecycle import CANCELLABLE, State
from scheduling.core.skip_reasons import PAUSED
from scheduling.models.execution import SchedulerExecution
from scheduling.models.last_runs import FAILURES
from scheduling.models.plan import OVERDUE_AFTER, PlanState
from scheduling.models.scheduler import Scheduler

_GOES_ON = [state.value for state in CANCELLABLE]

LEFT_OUT_BY_PAUSE = Q(state=State.SKIPPED.value, reason__startswith=PAUSED)
"""Executions that record what a pause has left out. They say nothing about the health of a schedule."""

ORDER = ("health_rank", "description", "pk")
"""The order of lists of schedules: the most urgent health first, then by name."""


def with_health(rows: QuerySet[Scheduler], now: datetime) -> QuerySet[Scheduler]:
    """Add `health_rank`: the place of the health in the order of urgency. 0 is the most urgent. See `health_of`.

    For each schedule, the database reads the newest entries of the index (scheduler, -id), until it finds a result. So
    the cost depends on the number of schedules, not on the number of executions. The rank is the least of three ranks,
    because in a chain of conditions the database would run a subquery once for each condition that uses it.

    A one-time schedule is paused after its run. Its health is then its result, and not "paused".
    """
    own = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).exclude(LEFT_OUT_BY_PAUSE).order_by("-pk")
    newest = own.filter(state__in=[*RESULTS, *_GOES_ON])
    is_paused = Q(status=False) & (Q(date_time__isnull=True) | ~Exists(newest))
    is_late = Q(status=True, next_run_at__lt=now - OVERDUE_AFTER)
    rank = Case(
        When(is_paused, then=_rank(Health.PAUSED)),
        When(plan_state=PlanState.SET_ASIDE, then=_rank(Health.FAILING)),
        default=Least(
            Case(When(is_late, then=_rank(Health.LATE)), default=_LEAST_URGENT),
            # The newest execution of all. It may hide a bad result, so the newest result is read, too.
            Coalesce(Subquery(newest.values(found=_of_state(Health.RUNNING))[:1]), _rank(Health.NEVER_RAN)),
            Coalesce(Subquery(own.filter(state__in=RESULTS).values(found=_of_state())[:1]), _LEAST_URGENT),
        ),
        output_field=IntegerField(),
    )
    return rows.annotate(health_rank=rank)


def _rank(health: Health) -> Value:
    return Value(list(Health).index(health), output_field=IntegerField())


_LEAST_URGENT = Value(len(Health), output_field=IntegerField())


def _of_state(going_on: Health | None = None) -> Case:
    """The rank of an execution's state. Without `going_on`, a success has no influence on the least of the ranks."""
    return Case(
        When(state__in=FAILURES, then=_rank(Health.FAILING)),
        When(state=State.SKIPPED.value, then=_rank(Health.SKIPPED)),
        When(state=State.SUCCEEDED.value, then=_rank(Health.HEALTHY) if going_on else _LEAST_URGENT),
        default=_rank(going_on) if going_on else _LEAST_URGENT,
        output_field=IntegerField(),
    )


def health_of(row: Scheduler) -> Health:
    """The health of a row of `with_health`."""
    return list(Health)[row.health_rank]  # type: ignore[attr-defined]
