"""The failure review: what failed in the last days, each run or by error group."""

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
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from scheduling.run import Run

CHUNK = 500
"""Executions read at a time."""

ERROR_LIMIT = 300


class Grouping(StrEnum):
    """What one row stands for."""

    ERROR = "error"
    EACH = "each"


class FailureReviewParams(BaseModel):
    """Which failures, and how to show them."""

    model_config = ConfigDict(extra="forbid")

    days: int = Field(7, ge=1, le=90, description="How many days before the due instant to look back, 1 to 90.")
    include_discarded: bool = Field(False, description="Also those that an operator took out of the failed inbox.")
    group: Grouping = Field(
        Grouping.ERROR, description="error: one row for all failures of one cause. each: one row for each execution."
    )


@dataclass(frozen=True)
class Failure:
    """One failed execution, with what its attempts and its schedule tell."""

    execution_id: int
    type: str
    target: str
    scheduler_id: int | None
    schedule: str
    error_class: str
    error: str
    fingerprint: str
    attempts: int
    retries: int
    first_seen: datetime
    last_seen: datetime
    state: str


@dataclass
class Cause:
    """Failures that share an error group, added up; `latest` stands for all of them."""

    latest: Failure
    first_seen: datetime
    count: int = 0
    attempts: int = 0
    retries: int = 0
    targets: set[tuple[str, str]] = field(default_factory=set)
    schedules: set[int | None] = field(default_factory=set)
    states: set[str] = field(default_factory=set)

    def add(self, failure: Failure) -> None:
        """Count one more."""
        if failure.last_seen > self.latest.last_seen:
            self.latest = failure
        self.first_seen = min(self.first_seen, failure.first_seen)
        self.count += 1
        self.attempts += failure.attempts
        self.retries += failure.retries
        self.targets.add((failure.type, failure.target))
        self.schedules.add(failure.scheduler_id)
        self.states.add(failure.state)


class FailureReview(ReportController):
    """Lists the executions that failed for good in the last days, to see what to mend first."""

    title = "Failure review"
    formats = ("csv", "jsonl")
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
        """The failures of the `days` before the due instant, so that two reviews in a row neither overlap nor gap."""
        until = run.scheduled_at
        found = failures(until - timedelta(days=params.days), until, include_discarded=params.include_discarded)
        return map(each_row, found) if params.group is Grouping.EACH else map(cause_row, causes(found))


def failures(since: datetime, until: datetime, *, include_discarded: bool = False) -> Iterator[Failure]:
    """Executions that failed for good in [since, until): the inbox first, then what was discarded.

    By key in short queries, and without a join: a cursor that is open for long holds back SQLite's
    checkpoints, MySQL's driver would load its whole answer, and MariaDB sorts a join as a whole.
    """
    for state in (State.FAILED, State.DISCARDED) if include_discarded else (State.FAILED,):
        below: int | None = None
        while True:
            rows = SchedulerExecution.objects.filter(state=state.value, finished_at__gte=since).order_by("-pk")
            if below is not None:
                rows = rows.filter(pk__lt=below)
            chunk = list(rows.defer("params", "reason")[:CHUNK])
            yield from _within(_described(chunk), since, until)
            if len(chunk) < CHUNK:
                break
            below = chunk[-1].pk


def _within(found: Iterable[Failure], since: datetime, until: datetime) -> Iterator[Failure]:
    # A discard moves `finished_at`, so the last attempt's end decides.
    return (failure for failure in found if since <= failure.last_seen < until)


def _described(chunk: list[SchedulerExecution]) -> Iterator[Failure]:
    ends = _ends(chunk)
    ids = {row.scheduler_id for row in chunk if row.scheduler_id}
    schedules = dict(Scheduler.objects.filter(pk__in=ids).values_list("pk", "description"))
    for row in chunk:
        at = row.finished_at or row.executed_at
        first, last = ends.get(row.pk, (at, at))
        yield Failure(
            execution_id=row.pk,
            type=row.type,
            target=row.target_name,
            scheduler_id=row.scheduler_id,
            schedule=schedules.get(row.scheduler_id or 0, ""),
            error_class=row.error_class,
            error=next(iter(row.error_message.strip().splitlines()), "")[:ERROR_LIMIT],
            fingerprint=row.fingerprint,
            attempts=row.attempt,
            retries=row.retry_count,
            first_seen=first,
            last_seen=last,
            state=row.state,
        )


def _ends(chunk: list[SchedulerExecution]) -> dict[int, tuple[datetime, datetime]]:
    """When each execution failed first and last; a message that never ran has no attempts."""
    rows = (
        Attempt.objects.filter(execution__in=[row.pk for row in chunk])
        .exclude(outcome=Attempt.Outcome.INTERRUPTED)
        .order_by()
        .values_list("execution_id")
        .annotate(first=Min("finished_at"), last=Max("finished_at"))
    )
    return {pk: (first, last) for pk, first, last in rows}


def causes(found: Iterable[Failure]) -> list[Cause]:
    """Failures added up by error group, the most frequent first. Holds a cause each, not a failure each."""
    groups: dict[str, Cause] = {}
    for failure in found:
        key = failure.fingerprint or f"{failure.error_class}: {failure.error}"
        groups.setdefault(key, Cause(failure, failure.first_seen)).add(failure)
    return sorted(groups.values(), key=lambda cause: (-cause.count, -cause.latest.execution_id))


def each_row(failure: Failure) -> dict[str, Any]:
    """The row of one failure."""
    return {
        "date": failure.last_seen.date(),
        "type": failure.type,
        "target": failure.target,
        "scheduler_id": failure.scheduler_id,
        "schedule": failure.schedule,
        "error_class": failure.error_class,
        "error": failure.error,
        "attempts": failure.attempts,
        "retries": failure.retries,
        "first_seen": failure.first_seen.replace(microsecond=0),
        "last_seen": failure.last_seen.replace(microsecond=0),
        "count": 1,
        "state": failure.state,
        "execution_id": failure.execution_id,
    }


def cause_row(cause: Cause) -> dict[str, Any]:
    """The row of one error group; what differs within it is counted or joined."""
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
