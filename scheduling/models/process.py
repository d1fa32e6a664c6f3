"""Process: one start of a producer or consumer, with its heartbeat."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.conf import get_conf
from scheduling.core.lifecycle import silent_after
from scheduling.core.text import visible_text

CLOCK_AHEAD = "clock_ahead"
"""The key of `Process.info` with the seconds by which the host's clock is ahead of the database's; negative: behind."""

MOST_SECONDS = 1e12
"""A greater number, an infinite one, or one that is no number was not written by this software."""


def oldest_beat(now: datetime) -> datetime:
    """The time of the oldest heartbeat with which a process still counts as alive: two may be missed, no more."""
    return now - silent_after(get_conf().lease_seconds)


class ProcessQuerySet(models.QuerySet["Process"]):
    """Filters of processes. A process that has not stopped is alive or silent, depending on its heartbeat."""

    def alive(self, now: datetime, kind: str = "") -> ProcessQuerySet:
        """Processes that have not stopped, with a recent heartbeat. If `kind` is given, only those of this kind."""
        rows = self.filter(stopped_at__isnull=True, heartbeat_at__gte=oldest_beat(now))
        return rows.filter(kind=kind) if kind else rows

    def silent(self, now: datetime) -> ProcessQuerySet:
        """Processes that have not stopped and whose heartbeat is old. They died or cannot reach the database."""
        return self.filter(stopped_at__isnull=True, heartbeat_at__lt=oldest_beat(now))

    def serving(self, queue: str, now: datetime) -> list[Process]:
        """The alive consumers that serve this queue."""
        return [process for process in self.alive(now, Process.Kind.CONSUMER) if process.serves(queue)]


class Process(models.Model):
    """A producer or consumer that is running, or that ran earlier.

    `container_id` has the form host-pid-random and is unique for each start of a process. Host name and pid alone are
    not unique, because a restarted process can get the same values again.

    `code_at` is the time of the newest change in the files that the process has loaded. `code_changed_at` is the time
    of a later change: the process runs old code. It is NULL while the files are as the process has loaded them.
    """

    class Kind(models.TextChoices):
        PRODUCER = "producer", _("producer")
        CONSUMER = "consumer", _("consumer")

    container_id = models.CharField(_("process"), max_length=128, unique=True)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    host = models.CharField(_("host"), max_length=255)
    pid = models.PositiveIntegerField(_("process id"))
    concurrency = models.PositiveIntegerField(_("concurrency"), default=0)
    started_at = models.DateTimeField(_("started"))
    heartbeat_at = models.DateTimeField(_("last heartbeat"), db_index=True)
    stopped_at = models.DateTimeField(_("stopped"), null=True, blank=True)
    info = models.JSONField(_("state"), default=dict, blank=True)
    code_at = models.DateTimeField(_("code loaded"), null=True, blank=True)
    code_changed_at = models.DateTimeField(_("code changed"), null=True, blank=True)

    objects: ClassVar[models.Manager[Process]] = ProcessQuerySet.as_manager()

    class Meta:
        verbose_name = _("process")
        verbose_name_plural = _("processes")
        ordering = ["-id"]

    def __str__(self) -> str:
        return visible_text(self.container_id)

    @property
    def queue(self) -> str:
        """The queue that the consumer serves. Empty for a producer, and for a consumer before its first heartbeat."""
        return str(self.info.get("queue", "")) if isinstance(self.info, dict) else ""

    def serves(self, queue: str) -> bool:
        """Whether the consumer serves the queue. Before its first heartbeat, the answer is True for any queue."""
        return self.queue in {queue, ""}

    @property
    def clock_ahead(self) -> float:
        """Seconds by which the host's clock was ahead of the database's at the last heartbeat; negative if behind."""
        ahead = self.info.get(CLOCK_AHEAD, 0.0) if isinstance(self.info, dict) else 0.0
        usable = isinstance(ahead, int | float) and abs(ahead) < MOST_SECONDS  # plain SQL can write any JSON
        return float(ahead) if usable else 0.0

    def is_alive(self, now: datetime) -> bool:
        """Whether the process has not stopped and its heartbeat is recent."""
        return self.stopped_at is None and self.heartbeat_at >= oldest_beat(now)

    def is_silent(self, now: datetime) -> bool:
        """Whether the process has not stopped and its heartbeat is old: it died or cannot reach the database."""
        return self.stopped_at is None and not self.is_alive(now)
