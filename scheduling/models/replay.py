"""Replay: failed executions that an operator republishes together. One execution, the canary, runs first."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.models.used_group import refuse_used_group


class Replay(models.Model):
    """A replay republishes one execution, the canary, at once. The other executions follow if the canary succeeds.

    Producers send the other executions in small batches (scheduling/inbox/replay_sweep.py). Every change of `state` and
    `position` is a compare-and-set. So several producers can work on one replay, and the replay continues if one of
    them dies.
    """

    class State(models.TextChoices):
        COLLECTING = "collecting", _("collecting")
        WAITING = "waiting", _("testing one run")
        RELEASED = "released", _("sending")
        STOPPED = "stopped", _("stopped")
        DONE = "done", _("done")

    key = models.UUIDField(unique=True)
    """The key of the confirmation page. Because of this key, a second click does not start another replay."""
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    requested_by = models.CharField(_("requested by"), max_length=150)
    created_at = models.DateTimeField(_("started"))
    selection = models.CharField(_("selection"), max_length=500)
    """A description of the selected executions."""
    minutes = models.PositiveIntegerField(_("spread over minutes"), default=0)

    state = models.CharField(_("state"), max_length=10, choices=State.choices, db_index=True)
    reason = models.TextField(_("reason"), blank=True, default="")
    """Why the replay was stopped: a sentence for operators."""
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    # The column is not a foreign key, because retention removes executions without checking for references.
    canary = models.PositiveBigIntegerField(_("canary"), null=True)
    """The id of the execution that runs first."""
    canary_attempt = models.PositiveIntegerField(default=0)
    """The number of the canary's last attempt before the replay."""

    total = models.PositiveIntegerField(_("executions"), default=0)
    position = models.PositiveIntegerField(default=0)
    """How many of the selected executions have been sent or skipped, including the canary."""
    sent = models.PositiveIntegerField(_("sent"), default=0)
    skipped = models.PositiveIntegerField(_("skipped"), default=0)
    """How many executions were not sent, because they had left the inbox, had failed again or could not be read."""
    next_at = models.DateTimeField(null=True, blank=True)
    """When the next execution may be sent; set when the replay is released."""

    class Meta:
        verbose_name = _("replay")
        verbose_name_plural = _("replays")
        ordering = ["-id"]
        default_permissions = ()  # the inbox's permissions `view` and `republish` also cover replays

    def __str__(self) -> str:
        return _t("replay %(number)s") % {"number": self.pk}

    @property
    def is_open(self) -> bool:
        """Whether executions may still be sent."""
        return self.state in OPEN

    @property
    def step(self) -> timedelta:
        """The time between two executions; zero if the executions are not spread over time."""
        return timedelta(minutes=self.minutes) / max(self.total - 1, 1)


OPEN = (Replay.State.COLLECTING.value, Replay.State.WAITING.value, Replay.State.RELEASED.value)
"""The states in which executions may still be sent."""


class ReplayChunk(models.Model):
    """A part of a replay's selection, because the selection can be too large for one row."""

    replay = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    first = models.PositiveIntegerField()
    """The index, from 0, of the chunk's first execution in the selection."""
    items = models.JSONField()
    """A list of pairs `[execution id, attempt]`. The attempt is the execution's last attempt when the replay was
    requested. If the execution has a later attempt now, it has failed again. It is then not sent, because the operator
    has not seen the new failure."""

    class Meta:
        verbose_name = _("part of a replay")
        verbose_name_plural = _("parts of replays")
        constraints = [models.UniqueConstraint(fields=["replay", "first"], name="scheduling_replay_chunk")]

    def __str__(self) -> str:
        return f"{self.replay_id} from {self.first}"


class ReplayGroup(models.Model):
    """A group that executions of a replay have. Only users who see all groups of a replay see the replay."""

    replay = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="+", db_index=False)
    group = models.ForeignKey("auth.Group", on_delete=refuse_used_group, related_name="+")

    class Meta:
        verbose_name = _("group of a replay")
        verbose_name_plural = _("groups of replays")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["replay", "group"], name="scheduling_replay_group")]

    def __str__(self) -> str:
        return f"{self.replay_id} of {self.group_id}"
