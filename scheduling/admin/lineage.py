"""What an execution was run again from, what it was run again as, and its neighbours of the same schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduling.core.lifecycle import Trigger
from scheduling.core.occurrences import rerun_of
from scheduling.models import SchedulerExecution

LOOKED_AT = 1_000
"""Later runs of the schedule that are looked through for reruns: a stretch of the index on it."""


@dataclass
class Lineage:
    """Keys of executions; None where there is none, or it is deleted."""

    source: int | None = None
    source_gone: int | None = None
    reruns: list[int] = field(default_factory=list)
    earlier: int | None = None
    later: int | None = None


def lineage(row: SchedulerExecution) -> Lineage:
    """Four queries at most, each by an index."""
    found = Lineage()
    source = rerun_of(row.execution_key)
    if source is not None:
        if SchedulerExecution.objects.filter(pk=source).exists():
            found.source = source
        else:
            found.source_gone = source
    if row.scheduler_id is None:
        return found
    siblings = SchedulerExecution.objects.filter(scheduler=row.scheduler_id)
    found.earlier = siblings.filter(pk__lt=row.pk).order_by("-pk").values_list("pk", flat=True).first()
    following = siblings.filter(pk__gt=row.pk).order_by("pk").values_list("pk", "trigger", "execution_key")[:LOOKED_AT]
    for pk, trigger, key in following:
        if found.later is None:
            found.later = pk
        if trigger == Trigger.MANUAL.value and rerun_of(key) == row.pk:
            found.reruns.append(pk)
    return found
