"""The shapes of backfills and of their dry runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import Field

from scheduling.core.backfill import Standing
from scheduling.models import Backfill
from scheduling.operations.actor import Actor
from scheduling.operations.backfill_plan import BackfillPlan, warnings
from scheduling.operations.shapes import Shape

_COPIED = (
    "id", "since", "until", "timezone", "newest_first", "per_minute", "obey_overlap", "also_ran", "reason",
    "requested_by", "state", "note", "total", "position", "created", "existing", "created_at", "finished_at",
)  # fmt: skip


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


def plan_shape(plan: BackfillPlan) -> BackfillPlanShape:
    """The dry run."""
    counts = plan.counts
    return BackfillPlanShape(
        schedule_id=plan.schedule.pk,
        since=plan.since.astimezone(UTC),
        until=plan.until.astimezone(UTC),
        total=plan.total,
        **{standing.value: counts[standing] for standing in Standing},
        warnings=warnings(plan),
        instants=[
            BackfillLine(at=at, standing=found.value, execution=row and row.pk, state=row and row.state)
            for at, found, row in plan.lines()
        ],
    )


def backfills_in_bulk(actor: Actor, keys: Sequence[int]) -> dict[int, BackfillShape]:
    """The shapes of these backfills. The caller has made sure that the actor sees them."""
    rows = Backfill.objects.filter(pk__in=keys).select_related("group").defer("instants")
    return {row.pk: _shape(row) for row in actor.visible.with_schedules(rows)}


def backfill_shape(actor: Actor, pk: int) -> BackfillShape:
    """The shape of one backfill."""
    return backfills_in_bulk(actor, [pk])[pk]


def _shape(row: Backfill) -> BackfillShape:
    seen = row.scheduler
    return BackfillShape(
        **{name: getattr(row, name) for name in _COPIED},
        request=str(row.request),
        schedule_id=None if seen is None else seen.pk,
        schedule=None if seen is None else str(seen),
        group=None if row.group is None else row.group.name,
    )
