"""AlertMessage: one message to one channel. AlertNotice: what it tells."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.text import visible_text
from scheduling.models.alert import Alert

ERROR_LENGTH = 1_000


class AlertMessage(models.Model):
    """One message. It tells one or more alerts: what piles up while a server is away becomes one message.

    The row is written as SENDING before the message is sent, and as SENT after the server has accepted it. If the
    process dies in between, the message is sent once more, and says so (`repeats`).
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("not sent yet")
        SENDING = "sending", _("sending")
        SENT = "sent", _("sent")
        GIVEN_UP = "given_up", _("given up")
        ASIDE = "aside", _("set aside")
        """It must not be sent, because its alerts or its channel got another group."""

    channel = models.ForeignKey(
        "scheduling.Channel", models.SET_NULL, null=True, related_name="+", verbose_name=_("channel")
    )
    """NULL if the channel was deleted."""
    channel_name = models.CharField(_("channel"), max_length=100)
    delivery_id = models.CharField(_("delivery id"), max_length=32, unique=True, editable=False)
    """Hexadecimal digits. Each try has the same, so that a receiver can tell a repetition."""
    state = models.CharField(_("state"), max_length=8, choices=State)
    tries = models.PositiveIntegerField(_("tries"), default=0)
    repeats = models.PositiveIntegerField(_("tries without an answer"), default=0)
    """How many tries ended without an answer. The receiver may have got the message from each of them."""
    done = models.JSONField(default=list, editable=False)
    """What is known of the addresses of an e-mail channel, as texts: which have the message, and which may have it."""
    next_try_at = models.DateTimeField(_("next try"), null=True, blank=True)
    """When it is due; while it is being sent, when the try counts as lost. NULL if it has ended."""
    error = models.CharField(_("error"), max_length=ERROR_LENGTH, blank=True, default="")
    created_at = models.DateTimeField(_("created"))
    ended_at = models.DateTimeField(_("ended"), null=True, blank=True, db_index=True)

    objects: ClassVar[models.Manager[AlertMessage]] = models.Manager()

    class Meta:
        verbose_name = _("message of alerts")
        verbose_name_plural = _("messages of alerts")
        ordering = ["-id"]
        default_permissions = ()  # the page of the alert shows these rows
        indexes = [models.Index(fields=["state", "next_try_at"], name="scheduling_alert_message_due")]

    def __str__(self) -> str:
        return visible_text(f"{self.channel_name}: {self.get_state_display()}")


class AlertNotice(models.Model):
    """The start or the end of one alert, for one channel. It waits until a message takes it along."""

    class Event(models.TextChoices):
        START = "start", _("start")
        END = "end", _("end")

    alert = models.ForeignKey(Alert, models.CASCADE, related_name="notices")
    channel = models.ForeignKey("scheduling.Channel", models.CASCADE, related_name="+")
    event = models.CharField(_("event"), max_length=5, choices=Event)
    message = models.ForeignKey(AlertMessage, models.SET_NULL, null=True, related_name="notices")
    """NULL while it waits."""

    objects: ClassVar[models.Manager[AlertNotice]] = models.Manager()

    class Meta:
        verbose_name = _("notice of an alert")
        verbose_name_plural = _("notices of alerts")
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["alert", "channel", "event"], name="scheduling_alert_notice_once")
        ]

    def __str__(self) -> str:
        return f"{self.alert_id} {self.event}"
