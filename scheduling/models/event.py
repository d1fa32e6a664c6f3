"""Event: the topic and the metadata of an execution that delivers an event."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.events import LONGEST_TOPIC
from scheduling.core.text import visible_text


class Event(models.Model):
    """By this row, pages and code find the execution. The payload stands in the params of the execution."""

    execution = models.OneToOneField(
        "scheduling.SchedulerExecution", on_delete=models.CASCADE, primary_key=True, related_name="event"
    )
    topic = models.CharField(_("topic"), max_length=LONGEST_TOPIC)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)

    objects: ClassVar[models.Manager[Event]] = models.Manager()

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ["-pk"]  # "-execution" would join the executions, and follow their order
        default_permissions = ("view",)
        indexes = [models.Index(fields=["topic", "-execution"], name="scheduling_event_topic")]

    def __str__(self) -> str:
        return f"{visible_text(self.topic, 100)} {self.pk}"
