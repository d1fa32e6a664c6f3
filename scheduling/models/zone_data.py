"""ZoneData: the zone data (tzdata) that producers have used, and MovedRun: the runs that new data has moved."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.text import visible_text
from scheduling.models.used_group import group_column


class ZoneData(models.Model):
    """Zone data that a producer has started with. The row with the highest id is the present one.

    A producer with newer data adds a row, and plans the schedules anew in windows of their ids. The row keeps how far
    it is, so another producer goes on if this one dies (`execution.zone_plan`).
    """

    digest = models.CharField(max_length=64, unique=True)
    """The hash of the files of all zones."""
    version = models.CharField(_("version"), max_length=20, blank=True, default="")
    """The version of tzdata, such as `2026b`; empty if it is unknown."""
    offsets = models.JSONField(editable=False)
    """For each zone, its offsets in the next years (`core.zone_data.Offsets`)."""
    first_used_at = models.DateTimeField(_("first used"))
    cursor = models.PositiveBigIntegerField(default=0)
    """The schedules up to this id were looked at in the present pass."""
    passes = models.PositiveIntegerField(default=0)
    """How often all schedules were looked at."""
    done_at = models.DateTimeField(null=True, blank=True)
    """When the last pass ended; NULL while a pass goes on."""
    moved = models.PositiveIntegerField(_("moved runs"), default=0)

    objects: ClassVar[models.Manager[ZoneData]] = models.Manager()

    class Meta:
        verbose_name = _("zone data")
        verbose_name_plural = _("zone data")
        ordering = ["-id"]
        default_permissions = ()

    def __str__(self) -> str:
        return visible_text(self.version or self.digest[:12], 40)


class MovedRun(models.Model):
    """The next run of a schedule that new zone data has moved."""

    zone_data = models.ForeignKey(ZoneData, models.CASCADE, related_name="runs", verbose_name=_("zone data"))
    # SET_NULL: to delete a schedule, Django's pages would otherwise ask for the permission to delete moved runs.
    scheduler = models.ForeignKey(
        "scheduling.Scheduler", models.SET_NULL, null=True, related_name="+", verbose_name=_("schedule")
    )
    group = group_column()
    """The schedule's group at this time."""
    timezone = models.CharField(_("time zone"), max_length=64)
    old_at = models.DateTimeField(_("planned before"))
    new_at = models.DateTimeField(_("planned now"))
    moved_at = models.DateTimeField(_("moved"), db_index=True)

    objects: ClassVar[models.Manager[MovedRun]] = models.Manager()

    class Meta:
        verbose_name = _("moved run")
        verbose_name_plural = _("moved runs")
        ordering = ["-id"]
        default_permissions = ()  # the schedule's permission `view` also covers its moved runs

    def __str__(self) -> str:
        return f"{self.old_at:%Y-%m-%d %H:%M} → {self.new_at:%Y-%m-%d %H:%M} UTC"
