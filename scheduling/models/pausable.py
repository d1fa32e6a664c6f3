"""The columns that record a pause: since when, by whom, and up to which instant its occurrences are on record."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.run_bounds import PausedFor

PAUSE = ("paused_at", "paused_by", "pause_recorded_to", "paused_for", "failures_since")
"""The columns of `PausableModel`. They are written together with the plan of a row."""


class PausableModel(models.Model):
    """A row that can be paused. All columns but `failures_since` are empty while it is active, and if it never was.

    `execution.pauses` counts the occurrences that a pause leaves out, and records them when the pause ends.
    """

    paused_at = models.DateTimeField(_("paused since"), null=True, blank=True, editable=False, db_index=True)
    paused_by = models.CharField(_("paused by"), max_length=150, blank=True, default="", db_default="", editable=False)
    """The name of the user who paused the row; empty if code or plain SQL paused it."""
    pause_recorded_to = models.DateTimeField(null=True, blank=True, editable=False)
    """The occurrences of the pause up to this instant are on record. NULL if none is. An edit of the times during a
    pause records what the former times left out until then."""

    paused_for = models.CharField(
        max_length=8,
        blank=True,
        default="",
        db_default="",
        editable=False,
        choices=[(PausedFor.RUNS.value, _("its number of runs")), (PausedFor.FAILURES.value, _("failures in a row"))],
    )
    """The rule of the row that has paused it (`core.run_bounds`); empty if no rule has."""
    failures_since = models.DateTimeField(null=True, blank=True, editable=False)
    """When the row was resumed last. Failures in a row are counted from then on. NULL: it was never resumed."""

    class Meta:
        abstract = True

    def note_pause(self, active: bool, was_active: bool | None, now: datetime) -> None:
        """Set the columns after the status has changed.

        Args:
            was_active: the status of the former plan; None for a row that has never been planned.
        """
        if active:
            if was_active is False:
                self.failures_since = now
            self.paused_at, self.paused_by, self.pause_recorded_to = None, "", None
            self.paused_for = PausedFor.NOTHING.value
        elif self.paused_at is None:
            self.paused_at = now if was_active else None
            self.paused_by = self.paused_by if was_active else ""

    @property
    def left_out_since(self) -> datetime | None:
        """Occurrences after this instant are left out by the present pause and not on record yet."""
        return self.pause_recorded_to or self.paused_at
