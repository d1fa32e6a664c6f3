"""Dashboard: a model without a table. It gives the dashboard page a place in the admin and a permission."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class NoRows(models.Manager[Any]):
    """A manager that never queries the database. It is needed for `dumpdata`, which reads the rows of every model."""

    def get_queryset(self) -> models.QuerySet[Any]:
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
