"""Reminder: a message to send when its schedule is due. The code that sends reminders is not written yet."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text


class Reminder(models.Model):
    """The subject, text and recipients of a reminder."""

    name = models.CharField(_("name"), max_length=100, unique=True)
    subject = models.CharField(_("subject"), max_length=200)
    body = models.TextField(_("text"), blank=True, default="")
    recipients = models.TextField(_("recipients"), help_text=_("E-mail addresses, one per line."))
    params = models.JSONField(_("parameters"), default=dict, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("reminder")
        verbose_name_plural = _("reminders")
        ordering = ["name"]

    def __str__(self) -> str:
        return visible_text(self.name)

    @property
    def handler_name(self) -> str:
        """The name of the handler, which is the same for every reminder."""
        return TARGET_KINDS["reminder"].handler
