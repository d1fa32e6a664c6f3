"""Reminder: a message that is sent when its schedule is due."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.targets import TARGET_KINDS
from scheduling.core.text import visible_text
from scheduling.models.channel import protect_channels
from scheduling.models.checked_params import CheckedParams


class Reminder(CheckedParams):
    """The texts and the recipients of a reminder. The texts are templates (`notify.message_template`)."""

    name = models.CharField(_("name"), max_length=100, unique=True)
    subject = models.CharField(_("subject"), max_length=200)
    body = models.TextField(_("text"), blank=True, default="")
    html = models.TextField(
        _("HTML text"), blank=True, default="", help_text=_("Optional: the same message for programs that show HTML.")
    )
    users = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="+", verbose_name=_("users"))
    groups = models.ManyToManyField("auth.Group", blank=True, related_name="+", verbose_name=_("groups of users"))
    recipients = models.TextField(
        _("further addresses"), blank=True, default="", help_text=_("E-mail addresses, one per line.")
    )
    channels = models.ManyToManyField(
        "scheduling.Channel", blank=True, related_name="reminders", verbose_name=_("channels")
    )
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


protect_channels(Reminder.channels.through)
