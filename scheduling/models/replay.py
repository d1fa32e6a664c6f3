"""Replay: failed executions that are run again together, one of them first."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Replay(models.Model):
    """One execution, its canary, is republished at once; the others only after that one has succeeded.

    Producers send the others in small batches (scheduling/replay.py). Every change of `state` and
    `position` is a compare-and-set, so any number of producers may be at it, and any may die.
    """

    class State(models.TextChoices):
        COLLECTING = "collecting", _("collecting")
        WAITING = "waiting", _("canary runs")
        RELEASED = "released", _("sending")
        STOPPED = "stopped", _("stopped")
        DONE = "done", _("done")

    key = models.UUIDField(unique=True)
    """Of the page that asked: its second click meets this row."""
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    requested_by = models.CharField(_("requested by"), max_length=150)
    created_at = models.DateTimeField(_("started"))
    selection = models.CharField(_("selection"), max_length=500)
    """What was chosen, in words."""
    minutes = models.PositiveIntegerField(_("spread over minutes"), default=0)

    state = models.CharField(_("state"), max_length=10, choices=State.choices, db_index=True)
    reason = models.TextField(_("reason"), blank=True, default="")
    """Why it was stopped: a sentence for operators."""
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    # Numbers and no foreign key: retention removes executions without asking who points at them.
    canary = models.PositiveBigIntegerField(_("canary"), null=True)
    """The execution that goes first."""
    canary_attempt = models.PositiveIntegerField(default=0)
    """The canary's last attempt before it was sent."""

    total = models.PositiveIntegerField(_("executions"), default=0)
    position = models.PositiveIntegerField(default=0)
    """How many of the selection were gone through, the canary included."""
    sent = models.PositiveIntegerField(_("sent"), default=0)
    skipped = models.PositiveIntegerField(_("skipped"), default=0)
    """Those that had left the inbox by other hands when their turn came."""
    next_at = models.DateTimeField(null=True, blank=True)
    """When the next one may be sent; set when the replay is released."""

    class Meta:
        verbose_name = _("replay")
        verbose_name_plural = _("replays")
        ordering = ["-id"]
        default_permissions = ()  # who may see the inbox sees them; who may republish stops them

    def __str__(self) -> str:
        return f"replay {self.pk}"

    @property
    def is_open(self) -> bool:
        """Whether something may still be sent."""
        return self.state in OPEN

    @property
    def step(self) -> timedelta:
        """Between one execution and the next, when they are spread."""
        return timedelta(minutes=self.minutes) / max(self.total - 1, 1)


OPEN = (Replay.State.COLLECTING.value, Replay.State.WAITING.value, Replay.State.RELEASED.value)
"""The states in which something may still be sent."""


class ReplayChunk(models.Model):
    """A part of a replay's selection: a hundred thousand executions are no single row."""

    replay = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    first = models.PositiveIntegerField()
    """The place of its first execution in the selection, from 0."""
    items = models.JSONField()
    """Pairs of an execution's id and its last attempt when it was chosen: one that has run since is another
    failure, which nobody has looked at."""

    class Meta:
        verbose_name = _("part of a replay")
        verbose_name_plural = _("parts of replays")
        constraints = [models.UniqueConstraint(fields=["replay", "first"], name="scheduling_replay_chunk")]

    def __str__(self) -> str:
        return f"{self.replay_id} from {self.first}"
