"""The shapes in which rows leave through HTTP and `--json`. A field is added, but never renamed or removed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

VERSION = 1
"""The version of the JSON documents that commands write. A field is added without a new version."""


class Shape(BaseModel):
    """A JSON object. Times are in UTC; empty texts are empty, and what is not known is null."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TargetShape(Shape):
    """What a schedule or an execution runs."""

    type: str = Field(description="worker, report or reminder; empty if a message could not be read.")
    id: int | None
    name: str


class RunShape(Shape):
    """An execution in short."""

    id: int
    state: str
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ScheduleShape(Shape):
    """A schedule. Secrets among the params are masked."""

    id: int
    name: str | None
    description: str
    schedule: str
    date_time: datetime | None
    timezone: str
    status: bool
    pause_reason: str
    paused_at: datetime | None
    paused_by: str
    target: TargetShape
    worker_id: int | None
    report_id: int | None
    reminder_id: int | None
    params: Any
    calendar: str | None = Field(description="The name of the calendar at whose times it does not run.")
    overlap: str
    stay_alive: bool
    after: str | None = Field(
        description="The name of the schedule that it waits for. Null also if you may not see it."
    )
    after_id: int | None
    after_span: str
    after_within_seconds: int
    after_late: str
    spread_seconds: int | None
    spread_each: bool
    missed_runs: str
    missed_cap: int | None
    missed_within_seconds: int | None
    active_from: datetime | None
    active_until: datetime | None
    on_excluded: str
    queue: str
    priority: str
    time_limit: int | None
    language: str
    ping_url: str = Field(description="A mask, or the name of the environment variable; empty: none.")
    max_retries: int | None
    retry_delay_ms: int | None
    retry_multiplier: float | None
    retry_max_delay_ms: int | None
    retry_jitter: bool | None
    keep_success_days: int | None
    keep_failed_days: int | None
    keep_output_days: int | None
    keep_count: int | None
    start_within_seconds: int | None
    max_runs: int | None
    pause_after_failures: int | None
    paused_for: str = Field(description="The rule that has paused it: runs or failures; empty: no rule has.")
    user: str | None
    group: str | None
    source_file: str = Field(description="The schedule file that owns it; empty: none.")
    next_run_at: datetime | None
    next_nominal_at: datetime | None = Field(
        description="The first instant of its times that is not on record yet, if it is not `next_run_at`."
    )
    plan_error: str
    health: str = Field(description="failing, skipped, late, never_ran, running, healthy, paused or ended.")
    last_run: RunShape | None = Field(description="Null also if the caller may not see executions.")
    created_at: datetime
    updated_at: datetime
    version: str = Field(description="Changes with each edit; the ETag without its quotation marks.")


class UnusableShape(Shape):
    """A row that cannot be read, because plain SQL has written a value that no column of this kind holds."""

    id: int
    unusable: str
