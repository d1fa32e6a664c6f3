"""Channel: a place that messages are sent to: a chat, a webhook or a list of e-mail addresses."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.alert_rules import Severity
from scheduling.core.chat_services import shown, variable_of
from scheduling.core.text import visible_text
from scheduling.models.alert_rule import AlertRule
from scheduling.models.used_group import group_column

ADDRESS_LENGTH = 2_000

MOST_ADDRESSES = 100
"""A channel has at most so many e-mail addresses. Each of them gets a message of its own, one after the other."""


class Channel(models.Model):
    """A name for the address of a chat, for the address of a webhook, or for a list of e-mail addresses.

    The address is a secret: it has a token, and with the token everybody can write to the chat. So is the secret that
    signs the messages to a webhook. So they are not editable: no form, history entry or list takes them along by
    itself. The form of a channel replaces them and never shows them. E-mail addresses are no secret.
    """

    class Kind(models.TextChoices):
        CHAT = "chat", _("chat")
        WEBHOOK = "webhook", _("webhook")
        EMAIL = "email", _("e-mail addresses")

    name = models.CharField(_("name"), max_length=100, unique=True)
    description = models.CharField(_("description"), max_length=255, blank=True, default="")
    kind = models.CharField(
        _("kind"), max_length=16, choices=Kind.choices, default=Kind.CHAT, db_default=Kind.CHAT.value
    )
    address = models.TextField(_("address"), editable=False)
    """The address of a chat or a webhook; empty for e-mail addresses."""
    secret = models.CharField(_("secret"), max_length=200, editable=False, blank=True, default="", db_default="")
    """Signs the messages to a webhook (`notify.signature`); empty for other kinds."""
    recipients = models.TextField(
        _("e-mail addresses"), blank=True, null=True, default="", help_text=_("One per line. Each gets its own e-mail.")
    )
    tells_by_default = models.BooleanField(
        _("told by default"), default=False, help_text=_("It is told of the alerts of all rules that name no channel.")
    )
    least_severity = models.CharField(
        _("least severity"), max_length=10, choices=AlertRule.Severities, default=Severity.INFO.value,
        help_text=_("It is told of alerts of this severity and of more urgent ones."),
    )  # fmt: skip
    group = group_column(
        help_text=_("It is told of alerts about schedules of this group, and of alerts that belong to no group.")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("channel")
        verbose_name_plural = _("channels")
        ordering = ["name"]

    def __str__(self) -> str:
        return visible_text(self.name)

    @property
    def shown_address(self) -> str:
        """The part of the address that a page may show, such as `slack://…`."""
        return shown(str(self.address or ""))

    @property
    def shown_secret(self) -> str:
        """The part of the secret that a page may show: the name of its environment variable."""
        return shown(self.secret) if variable_of(str(self.secret or "")) else "…"

    @property
    def addresses(self) -> list[str]:
        """The e-mail addresses, at most one more than MOST_ADDRESSES. None comes twice, also not with other case."""
        found: dict[str, str] = {}
        for line in str(self.recipients or "").splitlines():
            if address := line.strip():
                found.setdefault(address.casefold(), address)
            if len(found) > MOST_ADDRESSES:
                break
        return list(found.values())


def protect_channels(links: Any) -> None:
    """Let no channel be deleted that these links name. Its owner would go on without it, unnoticed.

    Django offers no such option for the rows between the two models.

    Args:
        links: the model between, such as `Reminder.channels.through`.
    """
    links._meta.get_field("channel").remote_field.on_delete = models.PROTECT


def owners_of_channels() -> list[tuple[Any, str]]:
    """The models that send to channels, and their fields that name the channels."""
    links = [link for link in Channel._meta.related_objects if link.many_to_many]
    return [(link.related_model, link.field.name) for link in links]


protect_channels(AlertRule.channels.through)
