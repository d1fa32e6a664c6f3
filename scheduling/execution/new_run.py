"""NewRun: a run that code asks for, before its row is inserted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, ClassVar

from scheduling.core.lifecycle import Trigger
from scheduling.execution.publish import initial_columns
from scheduling.execution.table_insert import FIELDS
from scheduling.models import SchedulerExecution
from scheduling.processes.identity import container_id

OWN = (
    "execution_key", "scheduled_at", "wake_at", "key", "requested_by", "target_id", "target_name", "params", "headers",
    "queue",
)  # fmt: skip
"""The columns in which the runs of one call may differ."""


@dataclass(slots=True)
class NewRun:
    """The columns `OWN` of a new execution, and what `message_of` and `publish` read.

    A model instance would take ten times as long to make, because it has 31 fields.

    Args:
        id: the primary key, once the row is inserted; before this 0.
    """

    execution_key: str
    scheduled_at: datetime
    wake_at: datetime
    key: str | None
    requested_by: str
    target_id: int
    target_name: str
    params: dict[str, Any]
    headers: dict[str, str] | None
    queue: str
    id: int = 0

    type: ClassVar[str] = "worker"
    trigger: ClassVar[str] = Trigger.CODE.value
    scheduler_id: ClassVar[None] = None
    group_id: ClassVar[None] = None
    attempt: ClassVar[int] = 0
    retry_base: ClassVar[int] = 0

    def instance(self, shared: Mapping[str, Any]) -> SchedulerExecution:
        """The execution as a model instance, not saved yet."""
        return SchedulerExecution(**shared, **{name: getattr(self, name) for name in OWN})


def shared_columns(now: datetime, embedded: bool) -> dict[str, Any]:
    """The columns that all runs of one call share, by attribute.

    Args:
        embedded: whether the executions table is the queue.
    """
    own = {"executed_at": now, "container_id": container_id(), **initial_columns(now, embedded)}
    del own["wake_at"]
    return {"published_at": None, **_same_for_all(), **own}


@lru_cache(maxsize=1)
def _same_for_all() -> dict[str, Any]:
    """The columns that all runs from code share."""
    found = {field.attname: field.get_default() for field in FIELDS if field.attname not in OWN}
    return found | {"type": NewRun.type, "trigger": NewRun.trigger}
