"""DueRow: the columns of a due schedule that a claim reads."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from scheduling.core.targets import TARGETS
from scheduling.models.own_timing import TIMING_COLUMNS
from scheduling.models.run_bounds import COUNTED_RUNS
from scheduling.policies import overlap

COLUMNS = (
    "id", "schedule", "date_time", "timezone", "status", "params", "next_run_at", "plan_state",
    *overlap.COLUMNS[1:], *TIMING_COLUMNS, "next_nominal_at", "planned_at", "calendar_id",
    "start_within_seconds", "max_runs", *COUNTED_RUNS,
    "group_id", "queue", "priority", "revision", "after_id",
    *(f"{type_}_id" for type_ in TARGETS),
)  # fmt: skip
"""The columns that a claim reads."""


class DueRow(NamedTuple):
    """The columns of a due Scheduler. Reading these columns is many times as fast as loading a model instance."""

    id: int
    schedule: str
    date_time: datetime | None
    timezone: str
    status: bool
    params: dict[str, Any]
    next_run_at: datetime
    plan_state: int
    overlap: str
    stay_alive: bool
    open_run: int | None
    open_skip: int | None
    waiting_run: int | None
    spread_seconds: int | None
    spread_each: bool
    missed_runs: str
    missed_cap: int | None
    missed_within_seconds: int | None
    active_from: datetime | None
    active_until: datetime | None
    on_excluded: str
    next_nominal_at: datetime | None
    planned_at: datetime | None
    calendar_id: int | None
    start_within_seconds: int | None
    max_runs: int | None
    runs_counted: int
    counted_for: int | None
    group_id: int | None
    queue: str
    priority: str
    revision: int | None
    after_id: int | None
    target_type: str
    target_id: int | None

    @property
    def first(self) -> datetime:
        """The nominal instant of the first occurrence that is not on record."""
        return self.next_nominal_at or self.next_run_at


def due_row(values: tuple[Any, ...]) -> DueRow:
    """The row with the values of `COLUMNS`."""
    own, keys = values[: -len(TARGETS)], values[-len(TARGETS) :]
    found = ((type_, key) for type_, key in zip(TARGETS, keys, strict=True) if key is not None)
    return DueRow(*own, *next(found, ("", None)))
