"""Removes executions by the policies of single schedules, and by the number of executions to keep.

The index (scheduler, -id) has the executions of each schedule in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.db import connection
from django.db.models import Q, QuerySet

from scheduling.core.retention import RetentionPolicy, Rule
from scheduling.execution.retention.policies import edge_of, schedule_keys
from scheduling.execution.retention.windows import Row, window_of
from scheduling.execution.retention.work import Work
from scheduling.models import SchedulerExecution


def executions_of(scheduler: int | None) -> QuerySet[SchedulerExecution]:
    """The executions of a schedule; for None, the executions without a schedule."""
    return SchedulerExecution.objects.filter(scheduler=scheduler)


def newest_first() -> tuple[str, ...]:
    """The order of executions without a schedule in the index (scheduler, -id).

    PostgreSQL sorts by an index only if the order has all its columns. MariaDB then does not.
    """
    return ("scheduler_id", "-pk") if connection.vendor == "postgresql" else ("-pk",)


def by_own_policies(work: Work) -> bool:
    """Remove executions of schedules with own values. Returns whether the pass has time to go on."""
    return all(_by_policy(work, pk, policy) for pk, policy in sorted(work.policies.own.items()))


def _by_policy(work: Work, scheduler: int, policy: RetentionPolicy) -> bool:
    ages = [days for days in (policy.shortest_days, policy.output_days) if days is not None]
    edge = None if policy.count is None else edge_of(scheduler, policy.count)
    if not ages and edge is None:
        return True
    cutoff, cursor = work.cutoff(min(ages, default=None)), 0
    while True:
        window = window_of(executions_of(scheduler).filter(pk__gt=cursor), work.pace.window)
        if not window.keys:
            return True
        cursor = window.keys[-1]
        judged = {
            row: rule
            for row in window.rows
            if (rule := work.rule(row, policy, edge is not None and row.pk < edge)) not in (None, Rule.FAILED)
        }
        if not work.apply(judged):
            return False
        if (edge is None or cursor >= edge) and work.is_young(window.rows, cutoff):
            return True


def by_count(work: Work) -> bool:
    """Keep only the number of executions that the settings allow. Returns whether the pass has time to go on.

    Schedules with own values have been handled before. Executions without a schedule are counted for each target.
    """
    count = work.policies.base.count
    if count is None:
        return True
    for keys in schedule_keys(Q()):
        if not all(_superfluous(work, pk, count) for pk in keys if pk not in work.policies.own):
            return False
    return _without_schedule(work, count)


def _superfluous(work: Work, scheduler: int, count: int) -> bool:
    edge, cursor = edge_of(scheduler, count), 0
    while edge is not None:
        rows = executions_of(scheduler).filter(pk__gt=cursor, pk__lt=edge)
        window = window_of(rows, work.pace.window)
        if not window.keys:
            break
        cursor = window.keys[-1]
        if not work.apply(_counted(work, window.rows)):
            return False
    return work.pace.end_batch()


def _without_schedule(work: Work, count: int) -> bool:
    """The walk begins with the newest execution, and counts the executions of each target."""
    seen: Counter[tuple[str, int | None]] = Counter()
    rows = executions_of(None)
    while True:
        window = window_of(rows, work.pace.window, newest_first())
        if not window.keys:
            return True
        rows = executions_of(None).filter(pk__lt=window.keys[-1])
        superfluous = []
        for row in window.rows:
            if seen[row.target] >= count:
                superfluous.append(row)
            seen[row.target] += 1
        if not work.apply(_counted(work, superfluous)):
            return False


def _counted(work: Work, rows: Sequence[Row]) -> dict[Row, Rule]:
    """The rows that the count removes. What an age removes was removed (or counted) before."""
    base = work.policies.base
    return {row: Rule.COUNT for row in rows if work.rule(row, base, enough=True) is Rule.COUNT}
