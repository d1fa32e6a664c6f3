"""The shapes of backfills and of their dry runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from scheduling.core.backfill import Standing
from scheduling.models import Backfill
from scheduling.operations.actor import Actor
from scheduling.operations.backfill_plan import BackfillPlan, warnings
from scheduling.operations.shapes import BackfillLine, BackfillPlanShape, BackfillShape

_COPIED = (
    "id", "since", "until", "timezone", "newest_first", "per_minute", "obey_overlap", "also_ran", "reason",
    "requested_by", "state", "note", "total", "position", "created", "existing", "created_at", "finished_at",
)  # fmt: skip


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
