"""Backfill: the instants of a range for which an operator lets a schedule run afterwards."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.core.backfill import REASON_LENGTH, USUAL_PER_MINUTE
from scheduling.models.used_group import group_column


class Backfill(models.Model):
    """A backfill makes one execution for each instant that has none, at its rate (`execution.backfill_sweep`).

    The instants are computed and stored when it is asked for. So it makes what its dry run has shown, also if the
    schedule is edited meanwhile. Producers make the executions in small batches. One transaction holds the executions
    of a batch and the new `position`, and the key of each execution names its instant. So several producers may work on
    it, and it goes on if one of them dies.
    """

    class State(models.TextChoices):
        RUNNING = "running", _("in progress")
        PAUSED = "paused", _("paused")
        DONE = "done", _("done")
        CANCELLED = "cancelled", _("cancelled")
        STOPPED = "stopped", _("stopped")

    request = models.UUIDField(editable=False)
    """The key of the request. All schedules of one request share it. A second request with this key starts nothing."""
    scheduler = models.ForeignKey(
        "scheduling.Scheduler", models.SET_NULL, null=True, related_name="backfills", verbose_name=_("schedule")
    )
    group = group_column()
    """The schedule's group when it was asked for."""
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    requested_by = models.CharField(_("requested by"), max_length=150)
    created_at = models.DateTimeField(_("started"))
    reason = models.CharField(_("reason"), max_length=REASON_LENGTH, blank=True, default="")

    since = models.DateTimeField(_("from"))
    until = models.DateTimeField(_("until"))
    """The last instant that belongs to the range."""
    timezone = models.CharField(_("time zone"), max_length=64)
    """The zone of the schedule when it was asked for, for pages."""
    newest_first = models.BooleanField(_("newest first"), default=False)
    per_minute = models.PositiveIntegerField(_("runs per minute"), default=USUAL_PER_MINUTE)
    obey_overlap = models.BooleanField(_("obeys the overlap policy"), default=True)
    also_ran = models.BooleanField(_("also what ran"), default=False)
    instants = models.JSONField(editable=False)
    """The instants as whole seconds since 1970, in the order in which they run."""

    state = models.CharField(_("state"), max_length=10, choices=State, default=State.RUNNING.value)
    note = models.TextField(blank=True, default="")
    """Why it waits, or why it was stopped or cancelled: a sentence for operators."""
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    total = models.PositiveIntegerField(_("instants"), default=0)
    position = models.PositiveIntegerField(default=0)
    """How many of the instants are done with."""
    created = models.PositiveIntegerField(_("made"), default=0)
    existing = models.PositiveIntegerField(_("on record already"), default=0)
    """For how many instants nothing was made, because an execution was on record."""
    next_at = models.DateTimeField(null=True, blank=True)
    """When the next execution may be made."""

    objects: ClassVar[models.Manager[Backfill]] = models.Manager()

    class Meta:
        verbose_name = _("backfill")
        verbose_name_plural = _("backfills")
        ordering = ["-id"]
        default_permissions = ()  # the schedule's permissions `view` and `backfill` also cover backfills
        constraints = [models.UniqueConstraint(fields=["request", "scheduler"], name="scheduling_backfill_once")]
        indexes = [models.Index(fields=["state", "next_at", "id"], name="scheduling_backfill_next")]

    def __str__(self) -> str:
        return _t("backfill %(number)s") % {"number": self.pk}

    @property
    def is_open(self) -> bool:
        """Whether executions may still be made."""
        return self.state in OPEN


OPEN = (Backfill.State.RUNNING.value, Backfill.State.PAUSED.value)
"""The states in which executions may still be made."""
