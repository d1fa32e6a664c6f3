"""The executions of schedules, with times in seconds since 1970."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from scheduling.models import SchedulerExecution

_COLUMNS = (
    "pk", "scheduler", "execution_key", "trigger", "scheduled_at", "assigned_at", "executed_at", "finished_at",
    "state", "reason", "missed", "error_class",
)  # fmt: skip


class Row(NamedTuple):
    """An execution. Times are seconds since 1970."""

    pk: int
    schedule: int
    key: str
    trigger: str
    at: int
    assigned: float
    claimed: float
    finished: float
    state: str
    reason: str
    missed: int
    error: str

    @property
    def is_let_in(self) -> bool:
        """Whether its claim did not leave it out. It may have been left out later."""
        return self.state != "skipped" or self.finished > self.claimed


def rows_of(schedules: Iterable[int]) -> list[Row]:
    """The rows of schedules, in the order of their ids."""
    found = SchedulerExecution.objects.filter(scheduler__in=list(schedules)).order_by("pk").values_list(*_COLUMNS)
    return [_row(*values) for values in found]


def _row(
    pk: int, schedule: int, key: str, trigger: str, at: datetime, assigned: datetime | None, claimed: datetime,
    finished: datetime | None, *more: Any,
) -> Row:  # fmt: skip
    start, end = (assigned or at).timestamp(), finished.timestamp() if finished else float("inf")
    return Row(pk, schedule, key, trigger, int(at.timestamp()), start, claimed.timestamp(), end, *more)
