"""Process: one start of a producer or consumer, with its heartbeat."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.text import shown


class Process(models.Model):
    """Who is, or was, at work.

    `container_id` is host-pid-random, unique per process start: a host name and pid alone
    come back after a restart.
    """

    class Kind(models.TextChoices):
        PRODUCER = "producer", _("producer")
        CONSUMER = "consumer", _("consumer")

    container_id = models.CharField(_("container"), max_length=128, unique=True)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    host = models.CharField(_("host"), max_length=255)
    pid = models.PositiveIntegerField(_("process id"))
    concurrency = models.PositiveIntegerField(_("concurrency"), default=0)
    started_at = models.DateTimeField(_("started"))
    heartbeat_at = models.DateTimeField(_("last heartbeat"), db_index=True)
    stopped_at = models.DateTimeField(_("stopped"), null=True, blank=True)
    info = models.JSONField(_("state"), default=dict, blank=True)

    class Meta:
        verbose_name = _("process")
        verbose_name_plural = _("processes")
        ordering = ["-id"]

    def __str__(self) -> str:
        return shown(self.container_id)
