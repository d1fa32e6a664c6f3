"""Finds the health of schedules in the database, so that a list can show it, filter by it and sort by it.

The health belongs to the schedule: it is found from all its executions. Of a schedule that has changed its group, some
executions may be hidden from a user who sees the schedule. Then this user sees the health and not these executions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from functools import reduce
from operator import or_

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce, Least

from scheduling.core.health import RESULTS, Health
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.skip_reasons import ON_PURPOSE
from scheduling.core.targets import TARGETS
from scheduling.models.counts import count
from scheduling.models.execution import SchedulerExecution
from scheduling.models.last_runs import FAILURES
from scheduling.models.plan import OVERDUE_AFTER, PlanState, has_ended
from scheduling.models.scheduler import Scheduler
from scheduling.models.visibility import Visibility

_GOES_ON = [state.value for state in OPEN_STATES]

LEFT_OUT_ON_PURPOSE = Q(state=State.SKIPPED.value) & reduce(or_, (Q(reason__startswith=word) for word in ON_PURPOSE))
"""Executions that record what a pause or the overlap policy has left out. They say nothing about the health of a
schedule."""

OWN_RUNS = SchedulerExecution.objects.exclude(LEFT_OUT_ON_PURPOSE).order_by("-pk")
"""The executions that the health and the last result of a schedule are read from, the newest first."""

SORTED_SCHEDULES = 20_000
"""With more schedules, lists are sorted by number. The health is found with one look for each schedule, so for a
million schedules it would take ten seconds."""

RANK = "health_rank"
"""The name of the column that `with_health` adds."""
ORDER = (RANK, "description", "pk")
"""The order of lists of schedules: the most urgent health first, then by name."""


_LAST_RESULT = OWN_RUNS.filter(scheduler=OuterRef("pk")).values("pk")[:1]


def with_health(rows: QuerySet[Scheduler], now: datetime) -> QuerySet[Scheduler]:
    """Add `health_rank`: the place of the health in the order of urgency. 0 is the most urgent. See `health_of`.

    For each schedule, the database reads the newest entry of the index (scheduler, -id), and this execution. Only if
    the execution says nothing about the health, the database looks for an older one. Only if the execution still waits
    or runs, the database looks for the newest result, too, because a run must not hide a bad result. So the cost
    depends on the number of schedules, not on the number of executions. One expression returns the rank, because in a
    chain of conditions the database would run a subquery once for each condition that uses it.

    A one-time schedule is paused after its run. Its health is then its result, and not "paused". As a pause does, the
    end of a schedule hides its last result, which the failed inbox has.
    """
    own = OWN_RUNS.filter(state__in=[*RESULTS, *_GOES_ON])
    # This subquery belongs to the row of an execution, so its OuterRef is a column of that row.
    result = OWN_RUNS.filter(scheduler=OuterRef("scheduler"), state__in=RESULTS).values(found=_of_state(_LEAST_URGENT))
    running = Least(_rank(Health.RUNNING), Coalesce(Subquery(result[:1]), _LEAST_URGENT))
    found = Case(When(state__in=_GOES_ON, then=running), default=_of_state(_rank(Health.HEALTHY)))
    # The key alone, because MariaDB then always uses the index (scheduler, -id), which contains it. For other columns,
    # MariaDB may read and sort all executions of each schedule, depending on its statistics.
    newest_key = SchedulerExecution.objects.filter(scheduler=OuterRef(OuterRef("pk"))).order_by("-pk").values("pk")
    newest = SchedulerExecution.objects.filter(pk=Subquery(newest_key[:1])).order_by()
    older = Coalesce(Subquery(own.filter(scheduler=OuterRef("scheduler")).values(found=found)[:1]), _NEVER_RAN)
    says_nothing = LEFT_OUT_ON_PURPOSE | ~Q(state__in=[*RESULTS, *_GOES_ON])
    newest_rank = newest.values(found=Case(When(says_nothing, then=older), default=found))
    is_paused = Q(status=False) & (Q(date_time__isnull=True) | ~Exists(own.filter(scheduler=OuterRef("pk"))))
    is_late = Q(status=True, next_run_at__lt=now - OVERDUE_AFTER)
    rank = Case(
        When(is_paused, then=_rank(Health.PAUSED)),
        When(plan_state=PlanState.SET_ASIDE, then=_rank(Health.FAILING)),
        When(has_ended(now), then=_rank(Health.ENDED)),
        default=Least(
            Case(When(is_late, then=_rank(Health.LATE)), default=_LEAST_URGENT),
            Coalesce(Subquery(newest_rank), _NEVER_RAN),
        ),
        output_field=IntegerField(),
    )
    return rows.annotate(**{RANK: rank})


def _rank(health: Health) -> Value:
    return Value(list(Health).index(health), output_field=IntegerField())


_LEAST_URGENT = Value(len(Health), output_field=IntegerField())
_NEVER_RAN = _rank(Health.NEVER_RAN)


def _of_state(success: Value) -> Case:
    """The rank of the result of an execution. `success` is the rank of a good result."""
    return Case(
        When(state__in=FAILURES, then=_rank(Health.FAILING)),
        When(state=State.SKIPPED.value, then=_rank(Health.SKIPPED)),
        default=success,
        output_field=IntegerField(),
    )


def health_of(row: Scheduler) -> Health:
    """The health of a row of `with_health`."""
    return list(Health)[row.health_rank]  # type: ignore[attr-defined]


def may_sort(visible: Visibility) -> bool:
    """Whether lists are sorted by health. With more than `SORTED_SCHEDULES`, it would take seconds."""
    return not count(visible.schedules(), SORTED_SCHEDULES).capped


def most_urgent(rows: QuerySet[Scheduler], now: datetime, may_sort: bool) -> QuerySet[Scheduler, int]:
    """The primary keys of the schedules, the most urgent health first, if they may be sorted; else by number.

    Only keys, because a database sorts thousands of narrow rows much faster than wide ones.
    """
    order = ORDER if may_sort else ("pk",)
    return with_health(rows, now).order_by(*order).values_list("pk", flat=True)


def health_in_bulk(keys: Iterable[int], now: datetime) -> list[Scheduler]:
    """The schedules with these keys, with their health and their targets, in the order of the keys.

    Each has the attribute `last_result`: the primary key of the execution that `last_results` would return, or None.
    """
    wanted = list(keys)
    rows = Scheduler.objects.select_related(*TARGETS).annotate(last_result=Subquery(_LAST_RESULT))
    found = with_health(rows, now).in_bulk(wanted)
    return [found[pk] for pk in wanted if pk in found]


def last_results(ids: Collection[int], visible: Visibility) -> dict[int, SchedulerExecution]:
    """A dict that maps the id of each schedule to its latest execution that says something about its health.

    A schedule without such an execution is not in the dict, nor one whose execution is not seen. Only the columns that
    the pages show are loaded. The function always makes two queries. For each id, the subquery reads the index
    (scheduler, -id) from its newest entry on. A GROUP BY would read the entries of all executions of these schedules.
    """
    schedulers = Scheduler.objects.filter(pk__in=ids).order_by()
    found = schedulers.annotate(last=Subquery(_LAST_RESULT)).values_list("last", flat=True)
    rows = visible.executions().only("state", "scheduler_id", "scheduled_at", "started_at", "finished_at", "missed")
    return {row.scheduler_id: row for row in rows.filter(pk__in=[pk for pk in found if pk])}  # type: ignore[misc]
