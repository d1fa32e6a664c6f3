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
    at: datetime = Field(description="The instant, a whole minute; a whole second if the schedule counts seconds.")
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


class OccurrenceShape(Shape):
    """Occurrences to come of a schedule that is spread, bounded or has a calendar. They share their fate."""

    at: datetime = Field(description="The nominal instant of the first of them, which its execution key has.")
    last: datetime | None = Field(description="That of the last of them; null if they go on for ever.")
    count: int
    fate: str = Field(description="runs, excluded or held.")
    starts_at: datetime | None = Field(description="When the last of them starts; null if none of them starts.")
    reason: str = Field(description="What the calendar says; empty if none excludes or holds them.")


class NextRunsShape(Shape):
    """The next runs of a schedule. Those of a paused schedule take place only if it is resumed."""

    schedule_id: int
    words: str = Field(description="The schedule in English, such as `At 08:00`.")
    timezone: str
    is_active: bool
    runs: list[datetime]
    occurrences: list[OccurrenceShape] = Field(
        description="Of a schedule that is spread, bounded or has a calendar: what becomes of its next occurrences."
    )
    problem: str = Field(description="Why the runs cannot be told; empty if they can.")


class CalendarShape(Shape):
    """A calendar, without its entries."""

    id: int
    name: str
    description: str
    timezone: str = Field(description="The zone of its entries. Empty: CRON_TIMEZONE.")
    group: str | None
    problem: str = Field(description="Why it cannot be used; empty if it can. No schedule that names it runs then.")
    created_at: datetime
    updated_at: datetime
    version: str = Field(description="Changes with each edit; the ETag without its quotation marks.")


class ExclusionShape(Shape):
    """A time at which schedules with the calendar do not run. Entries that overlap or touch are joined."""

    start: datetime
    until: datetime | None = Field(description="Null: it never ends.")
    reasons: list[str]


class CalendarDetail(CalendarShape):
    """A calendar with its entries, and what it excludes in the next 12 months."""

    entries: str = Field(description="One entry a line.")
    exclusions: list[ExclusionShape] = Field(description="The next ones, at most 20.")


class RunChangeShape(Shape):
    """A run before and after an edit. At most one of the two is null."""

    before: datetime | None
    after: datetime | None
    mark: str = Field(description="same, changed, added or removed.")


class MinuteShape(Shape):
    """A minute of the next 24 hours, and how many schedules start in it."""

    at: datetime
    without: int = Field(description="Without the edit.")
    with_it: int = Field(description="With the edit.")
    own: bool = Field(description="Whether the edited schedule starts in it.")


class EmptierShape(Shape):
    """A minute in which fewer schedules start."""

    at: datetime
    starts: int


class LoadShape(Shape):
    """How crowded the next 24 hours are, as far as the caller sees the schedules."""

    until: datetime = Field(description="Up to here the minutes were counted.")
    is_cut: bool = Field(description="Whether this is earlier, because more schedules are due than are looked at.")
    minutes: list[MinuteShape] = Field(description="The most crowded ones.")
    busiest: MinuteShape | None = Field(description="The most crowded one in which the edited schedule starts.")
    emptier: list[EmptierShape] = Field(description="Emptier minutes near the busiest one, the best first.")


class PreviewShape(Shape):
    """What an edit would change. Nothing was stored."""

    schedule_id: int | None
    before: list[datetime] = Field(description="The next 20 runs without the edit; none for a paused schedule.")
    after: list[datetime]
    changes: list[RunChangeShape] = Field(description="Both side by side, up to the earlier one of the two ends.")
    load: LoadShape


class BackfillLine(Shape):
    """An instant of a backfill."""

    at: datetime
    standing: str = Field(description="new: it runs; ran: its occurrence has run; made: an earlier backfill made it.")
    execution: int | None = Field(description="The id of the execution that is on record.")
    state: str | None = Field(description="The state of this execution.")


class BackfillPlanShape(Shape):
    """What a backfill would do. Nothing was stored."""

    schedule_id: int
    since: datetime
    until: datetime
    total: int = Field(description="How many instants the range has.")
    new: int = Field(description="How many runs would be made.")
    ran: int = Field(description="How many occurrences have run already, and would not run again.")
    made: int = Field(description="How many runs an earlier backfill has made.")
    warnings: list[str]
    instants: list[BackfillLine] = Field(description="In the order in which they run.")


class BackfillShape(Shape):
    """A backfill: the instants of a range for which a schedule runs afterwards."""

    id: int
    request: str = Field(description="All schedules of one request share it.")
    schedule_id: int | None = Field(description="Null if the schedule is deleted, or not seen.")
    schedule: str | None
    since: datetime
    until: datetime
    timezone: str
    newest_first: bool
    per_minute: int
    obey_overlap: bool
    also_ran: bool
    reason: str
    requested_by: str
    state: str = Field(description="running, paused, done, cancelled or stopped.")
    note: str = Field(description="Why it waits, or why it was stopped or cancelled.")
    total: int
    position: int = Field(description="How many instants are done with.")
    created: int = Field(description="How many runs were made.")
    existing: int = Field(description="For how many instants an execution was on record already.")
    created_at: datetime
    finished_at: datetime | None
    group: str | None


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
