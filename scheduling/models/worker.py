"""Worker: a row that names a registered function and holds its default params."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.models.target import Target


class Worker(Target):
    """The row of a registered function. Operators choose the row as the target of a Scheduler."""

    name = models.CharField(
        _("name"), max_length=100, unique=True, help_text=_("The name under which the code is registered.")
    )

    made_schedule = models.CharField(max_length=255, blank=True, default="", editable=False)
    """The cron expression from which the schedule of `@worker(schedule=)` was made; empty if none was made. It keeps a
    schedule that operators have deleted from coming back."""

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        ordering = ["name"]
