"""Process: one start of a producer or consumer, with its heartbeat."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.conf import get_conf
from scheduling.core.lifecycle import silent_after
from scheduling.core.queues import queue_of
from scheduling.core.text import visible_text

CLOCK_AHEAD = "clock_ahead"
"""The key of `Process.info` with the seconds by which the host's clock is ahead of the database's; negative: behind."""

LAST_START = "last_start"
"""The key of `Process.info` with the time at which the consumer last started a run; NULL if it has started none."""

DRAINING = "draining"
"""The key of `Process.info` that says whether the consumer has stopped taking runs."""

CHOSEN = "handlers"
"""The key of `Process.info` with the options of a consumer that runs only some handlers (`core.chosen`)."""

HELD = "held"
"""The key of `Process.info` with the sentence that says why the process holds (`core.deployment`)."""

ALARM = "alarm"
"""The key of `Process.info` with why the broker takes no messages, and for how many seconds (`core.broker_alarm`)."""

AHEAD = timedelta(minutes=1)
"""A heartbeat may lie so far ahead of the clock of a host that reads it. One that lies further ahead was written before
the database's clock was set back, and says nothing: a process that lives writes a new one within seconds."""

MOST_SECONDS = 1e12
"""A greater number, an infinite one, or one that is no number was not written by this software."""


def recorded_instant(value: object) -> datetime | None:
    """A time in `Process.info`; None if there is none, or if plain SQL has written something else."""
    try:
        found = datetime.fromisoformat(str(value))
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def oldest_beat(now: datetime) -> datetime:
    """The time of the oldest heartbeat with which a process still counts as alive: two may be missed, no more."""
    return now - silent_after(get_conf().lease_seconds)


class ProcessQuerySet(models.QuerySet["Process"]):
    """Filters of processes. A process that has not stopped is alive or silent, depending on its heartbeat."""

    def alive(self, now: datetime, kind: str = "") -> ProcessQuerySet:
        """Processes that have not stopped, with a recent heartbeat. If `kind` is given, only those of this kind."""
        rows = self.filter(stopped_at__isnull=True, heartbeat_at__gte=oldest_beat(now), heartbeat_at__lte=now + AHEAD)
        return rows.filter(kind=kind) if kind else rows

    def silent(self, now: datetime) -> ProcessQuerySet:
        """Processes that have not stopped and have no recent heartbeat. They died or cannot reach the database."""
        not_recent = models.Q(heartbeat_at__lt=oldest_beat(now)) | models.Q(heartbeat_at__gt=now + AHEAD)
        return self.filter(not_recent, stopped_at__isnull=True)

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
    handler_set = models.ForeignKey(
        "scheduling.HandlerSet", null=True, blank=True, on_delete=models.SET_NULL, related_name="processes"
    )
    """The handlers that the process knows; NULL if it did not record them."""

    objects: ClassVar[models.Manager[Process]] = ProcessQuerySet.as_manager()

    class Meta:
        verbose_name = _("process")
        verbose_name_plural = _("processes")
        ordering = ["-id"]

    def __str__(self) -> str:
        return visible_text(self.container_id)

    @property
    def queue(self) -> str:
        """The queues that the consumer serves, with commas. Empty for a producer, and before the first heartbeat."""
        return str(self.info.get("queue", "")) if isinstance(self.info, dict) else ""

    def serves(self, queue: str) -> bool:
        """Whether the consumer serves the queue, or the queue to which this work queue belongs.

        Before its first heartbeat, the answer is True for any queue.
        """
        return not self.queue or queue_of(queue) in self.queue.split(",")

    @property
    def idle_since(self) -> datetime | None:
        """Since when the consumer has started nothing, although it has a free slot; None if it takes no runs now.

        Also None if its version does not record its last start.
        """
        info = self.info if isinstance(self.info, dict) else {}
        running = info.get("running")
        busy = not isinstance(running, int) or running >= self.concurrency
        if self.kind != Process.Kind.CONSUMER or LAST_START not in info or info.get(DRAINING) or busy:
            return None
        return recorded_instant(info[LAST_START]) or self.started_at

    @property
    def known_set(self) -> int | None:
        """The primary key of the set of handlers that the process knows; None if it recorded none that can be used."""
        return self.handler_set_id if type(self.handler_set_id) is int else None  # SQLite stores any type

    @property
    def clock_ahead(self) -> float:
        """Seconds by which the host's clock was ahead of the database's at the last heartbeat; negative if behind."""
        ahead = self.info.get(CLOCK_AHEAD, 0.0) if isinstance(self.info, dict) else 0.0
        usable = isinstance(ahead, int | float) and abs(ahead) < MOST_SECONDS  # plain SQL can write any JSON
        return float(ahead) if usable else 0.0

    @property
    def alarm(self) -> tuple[str, float]:
        """Why the broker took no messages at the last heartbeat, and for how many seconds; ("", 0.0): no alarm."""
        match self.info.get(ALARM) if isinstance(self.info, dict) else None:
            case [str(why), int() | float() as seconds] if why and 0 <= seconds < MOST_SECONDS:
                return visible_text(why, 300), float(seconds)
        return "", 0.0

    @property
    def held(self) -> str:
        """Why the process claimed, started and published nothing at its last heartbeat; empty if it worked."""
        return visible_text(self.info.get(HELD) or "", 500) if isinstance(self.info, dict) else ""

    def is_alive(self, now: datetime) -> bool:
        """Whether the process has not stopped and its heartbeat is recent."""
        return self.stopped_at is None and oldest_beat(now) <= self.heartbeat_at <= now + AHEAD

    def is_silent(self, now: datetime) -> bool:
        """Whether the process has not stopped and has no recent heartbeat: it died or cannot reach the database."""
        return self.stopped_at is None and not self.is_alive(now)
