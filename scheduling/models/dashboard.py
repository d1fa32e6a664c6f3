"""Dashboard: a page that has no rows, but a place in the admin and a permission."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class NoRows(models.Manager["Dashboard"]):
    """There is no table to ask: `dumpdata`, which asks every model, is answered without one."""

    def get_queryset(self) -> models.QuerySet[Dashboard]:
        """Nothing."""
        return super().get_queryset().none()


class Dashboard(models.Model):
    """Gives the dashboard its entry in the sidebar and `view_dashboard`."""

    objects: ClassVar[NoRows] = NoRows()

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")

    def __str__(self) -> str:
        return "dashboard"
