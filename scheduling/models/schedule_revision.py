"""ScheduleRevision: one change of a schedule: what it was before and after, by whom, why, and from when on."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from scheduling.core.revisions import Edits, Snapshot, text_of
from scheduling.core.text import visible_text
from scheduling.models.author import AuthorKind
from scheduling.models.overlap import OPEN_COLUMNS
from scheduling.models.plan import PLANNED
from scheduling.models.run_bounds import COUNTED_RUNS
from scheduling.models.scheduler import Scheduler

REASON_LENGTH = 500
NAME_LENGTH = 300

NOT_IN_STATE = frozenset(
    {"id", "created_at", "updated_at", "revision", "plan_state", "planned_at", *PLANNED, *OPEN_COLUMNS, *COUNTED_RUNS}
)
"""The columns of a schedule that decide nothing, or that producers write. A test names every other column."""

STATE_COLUMNS = tuple(field.attname for field in Scheduler._meta.concrete_fields if field.name not in NOT_IN_STATE)
"""The columns of a schedule that a revision holds. A foreign key is a number: `worker_id`."""


class RevisionKind(models.TextChoices):
    """What a revision is about."""

    FIRST = "first", _("first known state")
    """The schedule was there before it was noticed. What came before is unknown."""
    MADE = "made", _("made")
    CHANGED = "changed", _("changed")
    DELETED = "deleted", _("deleted")


class RevisionQuerySet(models.QuerySet["ScheduleRevision"]):
    """Filters of revisions."""

    def of(self, schedule: int) -> RevisionQuerySet:
        """Those of a schedule, the newest first."""
        return self.filter(schedule=schedule).order_by("-number")

    def newest_of(self, schedules: Collection[int] | None = None, where: Q | None = None) -> RevisionQuerySet:
        """The newest one of each of these schedules."""
        rows = self.filter(where or Q()) if schedules is None else self.filter(schedule__in=list(schedules))
        newer = ScheduleRevision.objects.using(self.db).filter(
            schedule=OuterRef("schedule"), number__gt=OuterRef("number")
        )
        return rows.filter(~Exists(newer))


class ScheduleRevision(models.Model):
    """One change of a schedule. The rows of a deleted schedule stay until retention removes them.

    The texts are JSON, as text: every database returns it unchanged.
    """

    schedule = models.PositiveBigIntegerField(_("schedule"))
    """The id of the schedule. It is no foreign key, because the schedule may be deleted."""
    schedule_name = models.CharField(_("name"), max_length=NAME_LENGTH, blank=True, default="")
    """What pages called the schedule after the change."""
    number = models.PositiveIntegerField(_("number"))
    """Counts the revisions of one schedule, from 1."""
    kind = models.CharField(max_length=8, choices=RevisionKind)
    state = models.TextField()
    """The `core.revisions` state after the change; of a deletion, the last one."""
    digests = models.TextField(default="{}")
    edits = models.TextField(default="{}")
    """What has changed, as `core.revisions.Edits`."""
    zone = models.CharField(max_length=64, blank=True, default="")
    """The time zone in which the schedule runs, also if the state names none."""
    author_kind = models.CharField(_("kind of author"), max_length=8, choices=AuthorKind)
    author = models.CharField(_("who"), max_length=200, blank=True, default="")
    reason = models.CharField(_("reason"), max_length=REASON_LENGTH, blank=True, default="")
    undoes = models.PositiveIntegerField(null=True)
    """The number of the revision that this one takes back."""
    at = models.DateTimeField(_("when"), db_index=True)
    """The change holds for the occurrences after this instant."""
    unsure_from = models.DateTimeField(null=True)
    """The occurrences from this instant to `at` were due when the change was made, and no producer had claimed them.
    They may have run by the former plan or by the new one. NULL: there were none."""

    objects: ClassVar[RevisionQuerySet] = RevisionQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = _("revision of a schedule")
        verbose_name_plural = _("revisions of schedules")
        ordering = ["-id"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["schedule", "number"], name="scheduling_revision_once")]

    def __str__(self) -> str:
        return visible_text(f"{self.schedule_name or self.schedule}, {self.number}")

    @classmethod
    def of_edits(cls, edits: Edits) -> ScheduleRevision:
        """A revision that is not stored, with these edits."""
        return cls(edits=text_of(edits))

    @property
    def snapshot(self) -> Snapshot:
        """The state after the change. What plain SQL has made unreadable is left out."""
        return Snapshot(_object(self.state), {key: str(text) for key, text in _object(self.digests).items()})

    @property
    def changes(self) -> Edits:
        """What has changed. What plain SQL has made unreadable is left out."""
        found = _object(self.edits).items()
        return {key: dict(edit) for key, edit in found if isinstance(edit, Mapping)}

    @property
    def group(self) -> int | None:
        """The group that the schedule had after the change."""
        found = self.snapshot.state.get("group_id")
        return found if type(found) is int else None


def _object(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
