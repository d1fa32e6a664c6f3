"""Defines the failure review, a report on recent failures. Each row is about one execution or one error group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db.models import Max, Min
from pydantic import BaseModel, ConfigDict, Field

from reports.controller import ReportController, Row
from scheduling.core.lifecycle import State
from scheduling.handlers import Run
from scheduling.models import Attempt, SchedulerExecution
from scheduling.models.schedule_names import shown_name
from scheduling.models.visibility import EVERYTHING, Visibility, visibility_of_group

ERROR_LIMIT = 300


class Grouping(StrEnum):
    """What one row of the report represents."""

    ERROR = "error"
    EACH = "each"


class FailureReviewParams(BaseModel):
    """Which failures the report lists, and how it groups them."""

    model_config = ConfigDict(extra="forbid")

    days: int = Field(7, ge=1, le=90, description="How many days before the due instant to look back, 1 to 90.")
    include_discarded: bool = Field(False, description="Also those that an operator took out of the failed inbox.")
    group: Grouping = Field(
        Grouping.ERROR, description="error: one row for all failures of one cause. each: one row for each execution."
    )


@dataclass(frozen=True)
class Failure:
    """One failed execution, with its schedule's name and the times of its first and last failed attempts."""

    execution: SchedulerExecution
    schedule: str
    first_seen: datetime
    last_seen: datetime

    @property
    def error(self) -> str:
        """The first line of the error, shortened."""
        return next(iter(self.execution.error_message.strip().splitlines()), "")[:ERROR_LIMIT]


@dataclass
class Cause:
    """The totals of one error group. The report shows the failure `latest` as the group's example."""

    latest: Failure
    first_seen: datetime
    count: int = 0
    attempts: int = 0
    retries: int = 0
    targets: set[tuple[str, str]] = field(default_factory=set)
    schedules: set[int | None] = field(default_factory=set)
    states: set[str] = field(default_factory=set)

    def add(self, failure: Failure) -> None:
        """Add one failure to the totals."""
        if failure.last_seen > self.latest.last_seen:
            self.latest = failure
        self.first_seen = min(self.first_seen, failure.first_seen)
        execution = failure.execution
        self.count += 1
        self.attempts += execution.attempt
        self.retries += execution.retry_count
        self.targets.add((execution.type, execution.target_name))
        self.schedules.add(execution.scheduler_id)
        self.states.add(execution.state)


class FailureReview(ReportController):
    """Lists the runs that failed for good, by default those of the last 7 days, with the most frequent cause first.

    Parameters choose another number of days and another order.
    """

    title = "Failure review"
    formats = ("csv", "jsonl")
    executions_per_query = 500
    columns = (
        "date",
        "type",
        "target",
        "scheduler_id",
        "schedule",
        "error_class",
        "error",
        "attempts",
        "retries",
        "first_seen",
        "last_seen",
        "count",
        "state",
        "execution_id",
    )

    def rows(self, params: FailureReviewParams, run: Run) -> Iterator[Row]:
        """Yield the rows for the failures of the last `days` days before the due instant.

        The result depends on the due instant, not on the time at which the report runs. If the schedule runs every
        `days` days, the periods of its reviews do not overlap and leave no gap.

        A user who sees the run also sees its file. So the review of a schedule with a group lists the failures of this
        group and those without a group. The review of a schedule without a group lists only failures without a group,
        whatever its user may see. A review that is made in a terminal lists all failures.
        """
        until = run.scheduled_at
        found = failures(
            until - timedelta(days=params.days), until,
            include_discarded=params.include_discarded, visible=visible_to(run),
        )  # fmt: skip
        return map(each_row, found) if params.group is Grouping.EACH else map(cause_row, causes(found))


def visible_to(run: Run) -> Visibility:
    """What a review may list. A report that is made in the foreground has no execution."""
    return visibility_of_group(run.group_id) if run.execution_id else EVERYTHING


def failures(
    since: datetime, until: datetime, *, include_discarded: bool = False, visible: Visibility
) -> Iterator[Failure]:
    """Yield the permanent failures from `since` until just before `until`.

    Failures in the inbox come first, discarded failures second. The rows are read in pages, and the highest id comes
    first. One cursor for all rows would be worse: on SQLite, an open cursor delays checkpoints; on MySQL, the driver
    loads all rows at once. The query has no join, because MariaDB would sort the whole joined result.
    """
    for state in (State.FAILED, State.DISCARDED) if include_discarded else (State.FAILED,):
        below: int | None = None
        while True:
            rows = visible.executions().filter(state=state.value, finished_at__gte=since).order_by("-pk")
            if below is not None:
                rows = rows.filter(pk__lt=below)
            chunk = list(rows.defer("params", "reason")[: FailureReview.executions_per_query])
            # A failure's time is the end of the last attempt, because a discard changes the execution's `finished_at`.
            yield from (failure for failure in _described(chunk, visible) if since <= failure.last_seen < until)
            if len(chunk) < FailureReview.executions_per_query:
                break
            below = chunk[-1].pk


def _described(chunk: list[SchedulerExecution], visible: Visibility) -> Iterator[Failure]:
    ends = _ends(chunk)
    ids = {row.scheduler_id for row in chunk if row.scheduler_id}
    rows = visible.schedules().filter(pk__in=ids).values_list("pk", "description", "name")
    schedules = {pk: shown_name(text, name) for pk, text, name in rows}
    for row in chunk:
        at = row.finished_at or row.executed_at
        yield Failure(row, schedules.get(row.scheduler_id or 0, ""), *ends.get(row.pk, (at, at)))


def _ends(chunk: list[SchedulerExecution]) -> dict[int, tuple[datetime, datetime]]:
    """The times of the first and the last failed attempt of each execution, by the execution's id.

    Attempts that do not fail do not count. The result leaves out executions that have no other attempts.
    """
    rows = (
        Attempt.objects.filter(execution__in=[row.pk for row in chunk])
        .exclude(outcome__in=[*Attempt.UNCOUNTED, Attempt.Outcome.SKIPPED.value])
        .order_by()
        .values_list("execution_id")
        .annotate(first=Min("finished_at"), last=Max("finished_at"))
    )
    return {pk: (first, last) for pk, first, last in rows}


def causes(found: Iterable[Failure]) -> list[Cause]:
    """The totals of the failures by error group, the most frequent group first.

    Memory grows with the number of groups, not with the number of failures.
    """
    groups: dict[str, Cause] = {}
    for failure in found:
        key = failure.execution.fingerprint or f"{failure.execution.error_class}: {failure.error}"
        groups.setdefault(key, Cause(failure, failure.first_seen)).add(failure)
    return sorted(groups.values(), key=lambda cause: (-cause.count, -cause.latest.execution.pk))


def each_row(failure: Failure) -> dict[str, Any]:
    """The row of one failure."""
    execution = failure.execution
    return {
        "date": failure.last_seen.date(),
        "type": execution.type,
        "target": execution.target_name,
        "scheduler_id": execution.scheduler_id,
        "schedule": failure.schedule,
        "error_class": execution.error_class,
        "error": failure.error,
        "attempts": execution.attempt,
        "retries": execution.retry_count,
        "first_seen": failure.first_seen.replace(microsecond=0),
        "last_seen": failure.last_seen.replace(microsecond=0),
        "count": 1,
        "state": execution.state,
        "execution_id": execution.pk,
    }


def cause_row(cause: Cause) -> dict[str, Any]:
    """The row of one error group. Attempts and retries are totals.

    If the group has several targets or schedules, the row has their number instead of their names.
    """
    row = each_row(cause.latest) | {
        "attempts": cause.attempts,
        "retries": cause.retries,
        "first_seen": cause.first_seen.replace(microsecond=0),
        "count": cause.count,
        "state": ", ".join(sorted(cause.states, reverse=True)),
    }
    if len(cause.targets) > 1:
        row["type"] = ", ".join(sorted({type_ for type_, _ in cause.targets}))
        row["target"] = f"{len(cause.targets)} targets"
    if len(cause.schedules) > 1:
        row["scheduler_id"] = None
        row["schedule"] = f"{len(cause.schedules)} schedules"
    return row
