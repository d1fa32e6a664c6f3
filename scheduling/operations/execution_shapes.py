"""The shapes of executions, with their attempts and files."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from scheduling.operations.shapes import Shape, TargetShape


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
    assigned_at: datetime | None = Field(
        description="When it was to start, if its schedule is spread, or a calendar held it."
    )
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
    start_by: datetime | None = Field(description="The start deadline; null if there is none, or if it has started.")
    queue: str
    priority: str
    progress: str
    error_class: str
    error_message: str = Field(description="Its first 1,000 characters; the attempts have the whole text.")
    fingerprint: str
    reason: str
    missed: int
    revision: int | None = Field(description="The number of the schedule's revision that planned it.")
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
