"""Deployment: the one row that says whose database this is, and how long its processes have worked."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

ONLY = 1
"""The primary key of the row."""


class Deployment(models.Model):
    """One row. A copy of the database has it too, so a process can tell a copy by it (`core.deployment`).

    Each heartbeat of a process reads the row. One process writes it in each interval: it adds the seconds of the
    interval to `worked`, so that the value never depends on a clock.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=ONLY, editable=False)
    timeline = models.CharField(_("timeline"), max_length=32)
    """Random. It changes with each confirmation, so that notes about an earlier time are told apart."""
    former = models.TextField(_("earlier timelines"), blank=True, default="")
    name = models.CharField(_("name"), max_length=100, blank=True, default="")
    fingerprints = models.TextField(_("fingerprints"), blank=True, default="")
    worked = models.PositiveBigIntegerField(_("worked seconds"), default=0)
    beat_at = models.DateTimeField(_("newest beat"), null=True, blank=True)
    held_at = models.DateTimeField(_("held since"), null=True, blank=True)
    held_reason = models.TextField(_("reason"), blank=True, default="")
    """Why all processes hold; empty if they do not, or if each finds it by itself in its settings."""
    known_until = models.DateTimeField(_("newest known beat"), null=True, blank=True)
    """Up to when the deployment is known to have worked before the database was restored."""
    confirmed_at = models.DateTimeField(_("confirmed"), null=True, blank=True)
    confirmed_by = models.CharField(_("confirmed by"), max_length=150, blank=True, default="")

    objects: ClassVar[models.Manager[Deployment]] = models.Manager()

    class Meta:
        verbose_name = _("deployment")
        verbose_name_plural = _("deployment")
        default_permissions = ("view",)
        permissions = [("confirm_deployment", gettext_noop("Can confirm a database that was copied or restored"))]

    def __str__(self) -> str:
        return self.name or self.fingerprints[:8] or "deployment"
