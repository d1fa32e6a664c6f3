"""The error groups of the failed inbox. They show thousands of failures as a few groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from scheduling.core.text import visible_text
from scheduling.inbox.causes import COLUMNS, Cause, causes_of
from scheduling.inbox.releases import releases_of
from scheduling.models import SchedulerExecution
from scheduling.models.newest import newest_values
from scheduling.models.visibility import Visibility
from scheduling.operations import failures
from scheduling.operations.actor import Actor
from scheduling.operations.failure_selection import Selection, chosen
from scheduling.operations.failure_shapes import GroupShape, GroupsShape

MOST_TARGETS = 20
"""A group names so many of its targets, those with the most failures first."""
ERROR_SHOWN = 1_000


class GroupLimits:
    """How many groups an answer has, and how many failures are counted for it."""

    shown_groups = 100
    """The largest groups come first. A filter finds the other groups."""
    newest_counted = 10_000
    """Only the newest failures are counted, at most this many.

    Failures are spread over a table of millions of rows, so the database reads about one disk page for each failure.
    The limit bounds this cost. One query fetches the failures, and Python counts them. Several counting queries would
    read the same disk pages several times.
    """


@dataclass(frozen=True)
class Groups:
    """The largest error groups.

    Args:
        causes: one for each group.
        samples: maps the id of a group's newest failure to its row, with the error only. A row that was deleted
            meanwhile is left out.
        releases: maps the id of a group's first failure to its release, if this is known.
        more: the number of groups that are left out.
        newest: how many of the newest failures were counted; 0 if all failures were counted.
    """

    causes: list[Cause]
    samples: Mapping[int, SchedulerExecution]
    releases: Mapping[int, str]
    more: int
    newest: int

    def release(self, cause: Cause) -> str:
        """The release with which the first failure of the group ended; empty if it is unknown."""
        return self.releases.get(cause.first or 0, "")


def groups_among(rows: QuerySet[Any], visible: Visibility) -> Groups:
    """The error groups of these failures. This takes three queries."""
    newest = GroupLimits.newest_counted
    found = newest_values(rows.prefetch_related(None).defer(None), visible, COLUMNS, newest + 1)
    causes = causes_of(found[:newest])
    shown = causes[: GroupLimits.shown_groups]
    samples = SchedulerExecution.objects.only("error_class", "error_message").in_bulk([cause.latest for cause in shown])
    releases = releases_of(cause.first for cause in shown)
    return Groups(shown, samples, releases, len(causes) - len(shown), newest if len(found) > newest else 0)


def groups_shape(actor: Actor, wanted: Selection | None = None) -> GroupsShape:
    """The error groups of the failures that the actor sees and that are selected; without a selection, of all.

    Raises:
        Refused: FORBIDDEN or INVALID.
    """
    rows = failures.seen(actor)
    found = groups_among(rows if wanted is None else chosen(rows, wanted), actor.visible)
    return GroupsShape(
        groups=[_shape(found, cause) for cause in found.causes], more=found.more, newest_counted=found.newest
    )


def _shape(found: Groups, cause: Cause) -> GroupShape:
    sample = found.samples.get(cause.latest)
    targets = sorted(cause.targets.items(), key=lambda item: (-item[1], item[0][1]))
    return GroupShape(
        fingerprint=cause.fingerprint,
        count=cause.count,
        error_class="" if sample is None else sample.error_class,
        error_message="" if sample is None else visible_text(sample.error_message, ERROR_SHOWN),
        latest=cause.latest,
        first_at=cause.first_end,
        last_at=max(cause.ends, default=None),
        release=found.release(cause),
        targets={f"{type_} {name}".strip(): number for (type_, name), number in targets[:MOST_TARGETS]},
    )
