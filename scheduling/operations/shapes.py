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
    overlap: str
    stay_alive: bool
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
    user: str | None
    group: str | None
    source_file: str = Field(description="The schedule file that owns it; empty: none.")
    next_run_at: datetime | None
    plan_error: str
    health: str = Field(description="failing, late, skipped, running, paused, never ran or healthy.")
    last_run: RunShape | None = Field(description="Null also if the caller may not see executions.")
    created_at: datetime
    updated_at: datetime
    version: str = Field(description="Changes with each edit; the ETag without its quotation marks.")


class ExecutionShape(Shape):
    """An execution, without what is long."""

    id: int
    schedule_id: int | None
    schedule: str | None = Field(description="The description of the schedule, or its target and times.")
    schedule_name: str | None
    target: TargetShape
    execution_key: str
    trigger: str
    requested_by: str
    scheduled_at: datetime
    executed_at: datetime
    state: str
    is_over: bool = Field(description="Whether the state is final. A failed execution can be republished.")
    attempt: int = Field(description="The number of the newest attempt; 0 if none has started.")
    retries: int
    started_at: datetime | None
    finished_at: datetime | None
    due_at: datetime | None = Field(
        description="When it may start, or its next retry is due; null if it runs or ended."
    )
    queue: str
    priority: str
    progress: str
    error_class: str
    error_message: str = Field(description="Its first 1,000 characters; the attempts have the whole text.")
    fingerprint: str
    reason: str
    missed: int
    group: str | None


class AttemptShape(Shape):
    """How one attempt ended."""

    number: int
    outcome: str
    started_at: datetime
    finished_at: datetime
    retry_at: datetime | None
    consumer: str
    exit_code: int | None
    signal: int | None
    error_class: str
    error_message: str
    traceback: str
    release: str
    cpu_ms: int | None
    peak_memory_kb: int | None


class ArtefactShape(Shape):
    """A file that an attempt made."""

    id: int
    attempt: int
    filename: str
    size: int
    checksum: str
    rows: int | None
    is_result: bool
    created_at: datetime


class ExecutionDetail(ExecutionShape):
    """An execution with its params, result, attempts and files. Secrets among the params are masked."""

    params: Any
    headers: dict[str, str]
    result: Any
    attempts: list[AttemptShape]
    artefacts: list[ArtefactShape]


class UnusableShape(Shape):
    """A row that cannot be read, because plain SQL has written a value that no column of this kind holds."""

    id: int
    unusable: str


class GroupShape(Shape):
    """An error group of the failed inbox: failures with the same fingerprint."""

    fingerprint: str
    count: int
    error_class: str
    error_message: str
    latest: int = Field(description="The id of the newest failure.")
    first_at: datetime | None
    last_at: datetime | None
    release: str = Field(description="The release with which the first failure ended; empty if it is unknown.")
    targets: dict[str, int] = Field(
        description="How many failures each target has, such as `report Sales`; at most 20 targets."
    )


class GroupsShape(Shape):
    """The largest error groups of the failed inbox."""

    groups: list[GroupShape]
    more: int = Field(description="The number of groups that are left out.")
    newest_counted: int = Field(description="How many of the newest failures were counted; 0: all of them.")


class DoneShape(Shape):
    """What became of the selected failures, see `operations.failures.Done`."""

    dry_run: bool
    matching: int
    done: list[int]
    left: int
    refused: int
    left_out: int
    failed_before: datetime
    replay: int | None
    missing: list[int] = Field(description="Those of the chosen ids that are not in the inbox, or that you do not see.")


class NearShape(Shape):
    """An occurrence near an instant, by the present times of the schedule."""

    at: datetime
    execution: int | None
    state: str | None


class WhyShape(Shape):
    """Why a schedule did or did not run at an instant."""

    schedule_id: int
    at: datetime = Field(description="The instant, a whole minute.")
    answer: str = Field(
        description="recorded, left_out, will_run, will_be_left_out, not_created, other_times, not_due, paused, waits "
        "or no_record."
    )
    text: str = Field(description="The answer in a sentence.")
    note: str = Field(description="What the clocks did with a local time that was typed; empty: nothing.")
    execution: int | None = Field(description="The id of the execution that the answer tells of.")
    state: str | None = Field(description="The state of this execution.")
    before: NearShape | None = Field(description="The occurrence before, if the answer is that it was not due.")
    after: NearShape | None


class NextRunsShape(Shape):
    """The next runs of a schedule. Those of a paused schedule take place only if it is resumed."""

    schedule_id: int
    words: str = Field(description="The schedule in English, such as `At 08:00`.")
    timezone: str
    is_active: bool
    runs: list[datetime]
    problem: str = Field(description="Why the runs cannot be told; empty if they can.")


class TokenShape(Shape):
    """An API token, without its secret."""

    id: int
    name: str
    prefix: str = Field(description="The beginning of the secret.")
    user: str = Field(description="The user name of the owner.")
    state: str = Field(description="live, expired or revoked.")
    read_only: bool
    permissions: list[str] | None = Field(description="Null: all permissions of the owner.")
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
