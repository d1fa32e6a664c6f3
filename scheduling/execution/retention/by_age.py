"""Removes executions by the ages of the settings, in the order of the primary key."""

from __future__ import annotations

from scheduling.core.retention import Rule
from scheduling.execution.retention.windows import window_of
from scheduling.execution.retention.work import Work
from scheduling.models import SchedulerExecution


def by_age(work: Work) -> bool:
    """Remove executions without an own policy. Returns whether the pass has time to go on.

    The walk ends at the first window that was claimed after the cutoff.
    """
    policy, cursor = work.policies.base, 0
    cutoff = work.cutoff(policy.shortest_days)
    while True:
        window = window_of(SchedulerExecution.objects.filter(pk__gt=cursor), work.pace.window)
        if not window.keys:
            return True
        cursor = window.keys[-1]
        own = work.policies.own
        judged = {
            row: rule
            for row in window.rows
            if row.scheduler_id not in own and (rule := work.rule(row, policy)) in (Rule.SUCCESS, Rule.ENDED)
        }
        if not work.apply(judged):
            return False
        if work.is_young(window.rows, cutoff):
            return True
