"""Dashboard: a model without a table, which gives the dashboard page a place in the admin and a permission."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class NoRows(models.Manager["Dashboard"]):
    """A manager without queries, because `dumpdata` reads the rows of every model, and this model has no table."""

    def get_queryset(self) -> models.QuerySet[Dashboard]:
        return super().get_queryset().none()


class Dashboard(models.Model):
    """Gives the dashboard page its entry in the sidebar and the permission `view_dashboard`."""

    objects: ClassVar[NoRows] = NoRows()

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")

    def __str__(self) -> str:
        return "dashboard"
