"""The shape of a revision, for the HTTP API and the commands."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from scheduling.core.text import visible_text
from scheduling.models import ScheduleRevision
from scheduling.operations.actor import Actor
from scheduling.operations.revision_words import who
from scheduling.operations.revisions import revisions_of
from scheduling.operations.shapes import Shape


class RevisionShape(Shape):
    """One change of a schedule. Secrets are masked."""

    id: int
    scheduler_id: int
    number: int = Field(description="Counts the revisions of the schedule. An execution names it as `revision`.")
    kind: str = Field(description="first (the first known state), made, changed or deleted.")
    at: datetime = Field(description="It holds for the occurrences after this instant.")
    by: str
    by_kind: str = Field(description="user, token, command, file, code, fixture, sql, system or unknown.")
    reason: str
    undoes: int | None = Field(description="The number of the revision that this one takes back, or restores.")
    changes: dict[str, dict[str, Any]] = Field(
        description="What has changed: `old` and `new` of each value. A parameter is `params.<name>`; it has no `old` "
        "if it did not exist."
    )
    state: dict[str, Any] = Field(description="All values after the change.")


def revision_shape(row: ScheduleRevision) -> RevisionShape:
    """The shape of a revision."""
    return RevisionShape(
        id=row.pk, scheduler_id=row.schedule, number=row.number, kind=row.kind, at=row.at, by=who(row),
        by_kind=row.author_kind, reason=visible_text(row.reason, 500), undoes=row.undoes, changes=row.changes,
        state=dict(row.snapshot.state),
    )  # fmt: skip


def revisions_in_bulk(actor: Actor, schedule: int, keys: Sequence[int]) -> dict[int, RevisionShape]:
    """The shapes of the revisions of a schedule with these keys."""
    return {row.pk: revision_shape(row) for row in revisions_of(actor, schedule).filter(pk__in=keys)}
