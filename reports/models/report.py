"""Defines the model Report. Each row names a registered controller and holds the default params of the report."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.models.target import Target


class Report(Target):
    """A report that operators choose for a Scheduler."""

    name_field = "controller"

    controller = models.CharField(
        _("controller"), max_length=100, unique=True, help_text=_("The registered name of the report's code.")
    )

    class Meta:
        verbose_name = _("report")
        verbose_name_plural = _("reports")
        ordering = ["controller"]
