"""Notification: the record of one message to one recipient."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.text import visible_text

RECIPIENT_LENGTH = 254
"""The longest e-mail address (RFC 5321)."""

ERROR_LENGTH = 1_000


class Notification(models.Model):
    """One message of an execution to one recipient.

    The row is written as SENDING before the message is sent, and as SENT after the server has accepted it. If the
    process dies in between, the next attempt finds the row as SENDING. It then sends the message again, because it
    is unknown whether the first one has arrived. An e-mail keeps its Message-ID, and a webhook its delivery id. A chat
    has nothing like it.
    """

    class Kind(models.TextChoices):
        EMAIL = "email", _("e-mail")
        CHAT = "chat", _("chat")
        WEBHOOK = "webhook", _("webhook")

    class State(models.TextChoices):
        SENDING = "sending", _("sending")
        SENT = "sent", _("sent")
        WAITING = "waiting", _("not sent yet")
        REFUSED = "refused", _("refused")

    execution = models.ForeignKey(
        "scheduling.SchedulerExecution", on_delete=models.CASCADE, related_name="notifications", db_index=False
    )
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    recipient = models.CharField(_("recipient"), max_length=RECIPIENT_LENGTH)
    key = models.CharField(max_length=64)
    """A hash of the recipient, because some databases ignore case and accents when they compare texts."""
    message_id = models.CharField(_("Message-ID"), max_length=255, blank=True, default="")
    """The Message-ID of an e-mail, and the delivery id of a webhook: the same in each attempt."""
    state = models.CharField(_("state"), max_length=8, choices=State.choices)
    tries = models.PositiveIntegerField(_("tries"), default=0)
    unsure = models.PositiveIntegerField(_("tries without an answer"), default=0)
    """How many tries ended without an answer of the server. The recipient may have got a copy from each of them."""
    attempt = models.PositiveIntegerField(_("attempt"))
    """The attempt that has tried last."""
    error = models.CharField(_("error"), max_length=ERROR_LENGTH, blank=True, default="")
    changed_at = models.DateTimeField(_("changed"))

    objects: ClassVar[models.Manager[Notification]] = models.Manager()

    class Meta:
        verbose_name = _("notification")
        verbose_name_plural = _("notifications")
        ordering = ["id"]
        default_permissions = ()  # the page of the execution shows these rows
        constraints = [
            models.UniqueConstraint(fields=["execution", "kind", "key"], name="scheduling_notification_once")
        ]

    def __str__(self) -> str:
        return visible_text(f"{self.recipient}: {self.get_state_display()}")
