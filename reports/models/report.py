"""Report: a row that names a registered controller and holds its default params."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.text import shown


class Report(models.Model):
    """What an operator chooses as a Scheduler's target; made by itself after `migrate`."""

    controller = models.CharField(
        _("controller"), max_length=100, unique=True, help_text=_("The name under which the class is registered.")
    )
    title = models.CharField(_("title"), max_length=200, blank=True, default="")
    description = models.TextField(_("description"), blank=True, default="")
    params = models.JSONField(
        _("parameters"),
        default=dict,
        blank=True,
        help_text=_("Defaults for every schedule of this report, as a JSON object."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("report")
        verbose_name_plural = _("reports")
        ordering = ["controller"]

    def __str__(self) -> str:
        return shown(self.title or self.controller)

    @property
    def handler_name(self) -> str:
        """The name of the code behind the row."""
        return self.controller
