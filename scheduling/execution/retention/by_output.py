"""Removes output and artefacts by their age, and the artefacts of executions that no longer exist.

The walks read the tables of output and artefacts in the order of their executions. What has lost its output is not read
again.
"""

from __future__ import annotations

from django.db.models import Model

from scheduling.core.retention import Rule
from scheduling.execution import artefacts
from scheduling.execution.retention.windows import executions
from scheduling.execution.retention.work import Work
from scheduling.models import Artefact, Output, SchedulerExecution


def by_output(work: Work) -> bool:
    """Remove old output and artefacts. Returns whether the pass has time to go on."""
    if work.policies.base.output_days is not None and not _walk(work, Output):
        return False
    return _walk(work, Artefact)


def _walk(work: Work, table: type[Model]) -> bool:
    policies, cursor = work.policies, 0
    cutoff = work.cutoff(policies.base.output_days)
    while True:
        rows = table._default_manager.filter(execution__gt=cursor).order_by("execution")
        window = rows.values_list("execution", flat=True)[: work.pace.window]
        # Plain SQL can write a text here on SQLite. A text belongs to no execution, and comes after all numbers.
        keys = sorted({key for key in window if isinstance(key, int)})
        if not keys:
            return True
        cursor = keys[-1]
        found = executions(keys)
        if table is Artefact and not work.dry_run:
            _remove_leftovers(keys)
        judged = {
            row: Rule.OUTPUT
            for row in found
            if row.scheduler_id not in policies.own and work.rule(row, policies.base) is Rule.OUTPUT
        }
        if not work.apply(judged):
            return False
        if work.is_young(found, cutoff):
            return True


def _remove_leftovers(keys: list[int]) -> None:
    """Remove the artefacts whose execution no longer exists, because their file could not be deleted before."""
    there = set(SchedulerExecution.objects.filter(pk__in=keys).values_list("pk", flat=True))
    if gone := [pk for pk in keys if pk not in there]:
        artefacts.remove(Artefact.objects.of(gone))
