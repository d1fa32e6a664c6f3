"""Finds the health of schedules in the database, so that a list can show it, filter by it and sort by it."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, CharField, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When

from scheduling.core.health import RESULTS, Health
from scheduling.core.lifecycle import CANCELLABLE, State
from scheduling.models.execution import SchedulerExecution
from scheduling.models.last_runs import FAILURES
from scheduling.models.plan import OVERDUE_AFTER, PlanState
from scheduling.models.scheduler import Scheduler

_GOES_ON = [state.value for state in CANCELLABLE]

ORDER = ("health_rank", "description", "pk")
"""The order of lists of schedules: the most urgent health first, then by name."""


def with_health(rows: QuerySet[Scheduler], now: datetime) -> QuerySet[Scheduler]:
    """Add `health_rank`: the place of the health in the order of urgency. 0 is the most urgent. See `health_of`.

    For each schedule, the database reads the newest entries of the index (scheduler, -id), until it finds a result. So
    the cost depends on the number of schedules, not on the number of executions.

    A one-time schedule switches itself off after its run. Its health is then its result, and not "paused".
    """
    own = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).order_by("-pk")
    newest = Subquery(own.values("state")[:1], output_field=CharField())
    result = Subquery(own.filter(state__in=RESULTS).values("state")[:1], output_field=CharField())
    rows = rows.alias(newest_state=newest).alias(
        # Usually, the newest execution has a result, and the second subquery does not run.
        last_result=Case(When(newest_state__in=RESULTS, then=F("newest_state")), default=result)
    )
    is_paused = Q(status=False) & (Q(date_time__isnull=True) | Q(newest_state__isnull=True))
    cases = {
        Health.PAUSED: is_paused,
        Health.FAILING: Q(last_result__in=FAILURES) | Q(plan_state=PlanState.SET_ASIDE),
        Health.SKIPPED: Q(last_result=State.SKIPPED.value),
        Health.LATE: Q(status=True, next_run_at__lt=now - OVERDUE_AFTER),
        Health.RUNNING: Q(newest_state__in=_GOES_ON),
        Health.NEVER_RAN: Q(last_result__isnull=True),
    }
    ranks = {health: rank for rank, health in enumerate(Health)}
    rank = Case(
        *(When(condition, then=Value(ranks[health])) for health, condition in cases.items()),
        default=Value(ranks[Health.HEALTHY]),
        output_field=IntegerField(),
    )
    return rows.annotate(health_rank=rank)


def health_of(row: Scheduler) -> Health:
    """The health of a row of `with_health`."""
    return list(Health)[row.health_rank]  # type: ignore[attr-defined]
