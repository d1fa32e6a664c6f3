"""Finds the related executions to which an execution's page links.

These are the source of a rerun, the reruns, and the previous and the next execution of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduling.core.lifecycle import Trigger
from scheduling.core.occurrences import rerun_of
from scheduling.models import SchedulerExecution
from scheduling.models.visibility import Visibility

LOOKED_AT = 1_000
"""At most this many later executions of the schedule are searched for reruns. The limit keeps the page fast."""


@dataclass
class Lineage:
    """The primary keys of the related executions.

    Args:
        source: the execution of which this execution is a rerun; None if this execution is no rerun.
        source_exists: whether the source is still in the table.
        reruns: the reruns of this execution, the oldest first.
        earlier: the previous execution of the schedule; None if it does not exist.
        later: the next execution of the schedule; None if it does not exist.
    """

    source: int | None = None
    source_exists: bool = False
    reruns: list[int] = field(default_factory=list)
    earlier: int | None = None
    later: int | None = None


def lineage(row: SchedulerExecution, visible: Visibility) -> Lineage:
    """Find the related executions of the row that are seen, with at most three queries. All queries use an index."""
    found = Lineage(rerun_of(row.execution_key))
    found.source_exists = found.source is not None and visible.executions().filter(pk=found.source).exists()
    if row.scheduler_id is None:
        return found
    siblings = visible.executions().filter(scheduler=row.scheduler_id)
    found.earlier = siblings.filter(pk__lt=row.pk).order_by("-pk").values_list("pk", flat=True).first()
    following = siblings.filter(pk__gt=row.pk).order_by("pk").values_list("pk", "trigger", "execution_key")[:LOOKED_AT]
    for pk, trigger, key in following:
        if found.later is None:
            found.later = pk
        if trigger == Trigger.MANUAL.value and rerun_of(key) == row.pk:
            found.reruns.append(pk)
    return found
