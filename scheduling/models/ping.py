"""Ping: what an outside monitor is told about a run, and whether it was told."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from scheduling.core.pings import ENDS, FARTHEST, Event, Kind

HOST_LENGTH = 260
ERROR_LENGTH = 500

KINDS = [(Kind.HEALTHCHECKS.value, "Healthchecks"), (Kind.SENTRY.value, "Sentry")]
EVENTS = [(Event.START.value, _("start")), (Event.SUCCESS.value, _("success")), (Event.FAIL.value, _("failure"))]

OVER = sorted(state.value for state in ENDS)


class PingQuerySet(models.QuerySet["Ping"]):
    """Filters of pings."""

    def waiting(self) -> PingQuerySet:
        """The pings that are not delivered yet, and are still worth it."""
        return self.filter(state=Ping.State.WAITING)

    def next_of_schedules(self) -> PingQuerySet:
        """The waiting pings that come next: a ping waits until all earlier ones of its schedule are done.

        Otherwise, a failure that was told late would hide a later success.
        """
        earlier = Ping.objects.filter(
            scheduler_id=OuterRef("scheduler_id"), kind=OuterRef("kind"), state=Ping.State.WAITING,
            pk__lt=OuterRef("pk"),
        )  # fmt: skip
        return self.waiting().filter(~Exists(earlier.order_by()))

    def due(self, now: datetime) -> PingQuerySet:
        """Those that come next, and whose next try is due."""
        return self.next_of_schedules().tried_by(now)

    def tried_by(self, now: datetime) -> PingQuerySet:
        """Those whose next try is due (`core.pings.is_due`)."""
        return self.filter(models.Q(at__lte=now) | models.Q(at__gt=now + FARTHEST))

    def unended(self) -> PingQuerySet:
        """The starts of runs that are over, and of which no end was told: no attempt has ended them."""
        # SQLite would read the whole table for IS NOT NULL.
        return self.filter(open_execution__gt=0, execution__state__in=OVER)


class Ping(models.Model):
    """One event of a run for one monitor.

    The row is written in the transaction in which the attempt starts or ends. Each process sends what is due. It claims
    a row by a compare-and-set before it sends, so a process that dies in between leads to one repeated ping at most.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("not sent yet")
        SENT = "sent", _("sent")
        DROPPED = "dropped", _("not delivered")

    execution = models.ForeignKey(
        "scheduling.SchedulerExecution", on_delete=models.CASCADE, related_name="pings", db_index=False
    )
    scheduler_id = models.PositiveBigIntegerField()
    """The schedule. It may be deleted by now. Its ping URL is read when the ping is sent, and not copied."""
    kind = models.CharField(_("kind"), max_length=16, choices=KINDS)
    event = models.CharField(_("event"), max_length=8, choices=EVENTS)
    attempt = models.PositiveIntegerField(_("attempt"))
    run_id = models.UUIDField()
    """The same for the start and the end of a run (`core.pings.run_id`)."""
    begun_at = models.DateTimeField(_("begun"))
    """When the run started that was told to start."""
    created_at = models.DateTimeField(_("happened"))
    state = models.CharField(_("state"), max_length=8, choices=State.choices, default=State.WAITING)
    at = models.DateTimeField()
    """When the next try is due; for a ping that is sent or not delivered, since when."""
    tries = models.PositiveIntegerField(_("tries"), default=0)
    sending = models.BooleanField(default=False)
    """Whether a process has begun a try and has not recorded its result."""
    open_execution = models.PositiveBigIntegerField(null=True, blank=True)
    """Of a start: the execution, while its end is not told. Otherwise NULL."""
    host = models.CharField(_("host"), max_length=HOST_LENGTH, blank=True, default="")
    error = models.CharField(_("error"), max_length=ERROR_LENGTH, blank=True, default="")

    objects: ClassVar[PingQuerySet] = PingQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        verbose_name = _("ping")
        verbose_name_plural = _("pings")
        ordering = ["id"]
        default_permissions = ()  # the page of the execution shows these rows
        constraints = [models.UniqueConstraint(fields=["open_execution", "kind"], name="scheduling_ping_open")]
        indexes = [
            models.Index(fields=["state", "at"], name="scheduling_ping_state"),
            models.Index(fields=["scheduler_id", "kind", "state", "id"], name="scheduling_ping_order"),
            models.Index(fields=["execution"], name="scheduling_ping_execution"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.event} {self.execution_id}.{self.attempt}"
