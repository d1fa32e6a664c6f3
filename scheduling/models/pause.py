"""Pause: stops a handler, a queue or the whole site from starting runs."""

from __future__ import annotations

from datetime import UTC
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from scheduling.core.pauses import REASON_LENGTH, Scope, WorkPause
from scheduling.core.text import visible_text


class Pause(models.Model):
    """One pause. It stops nothing after its end. A user who resumes sets the end to the present time.

    A producer wakes the runs that have waited, and deletes the row a minute after its end (`producer.ended_pauses`).
    """

    class Scopes(models.TextChoices):
        SITE = Scope.SITE.value, _("the whole site")
        QUEUE = Scope.QUEUE.value, _("queue")
        HANDLER = Scope.HANDLER.value, _("handler")

    scope = models.CharField(_("what"), max_length=10, choices=Scopes)
    type = models.CharField(_("type"), max_length=20, blank=True, default="")
    """The type of the handler, such as `worker`; empty for the other scopes."""
    name = models.CharField(_("name"), max_length=100, blank=True, default="")
    """The name of the handler or of the queue; empty for the whole site."""
    reason = models.CharField(_("reason"), max_length=REASON_LENGTH)
    paused_by = models.CharField(_("paused by"), max_length=150, blank=True, default="")
    paused_at = models.DateTimeField(_("paused since"))
    ends_at = models.DateTimeField(_("ends"), null=True, blank=True, db_index=True)
    """When it ends by itself; NULL if a user ends it."""

    objects: ClassVar[models.Manager[Pause]] = models.Manager()

    class Meta:
        verbose_name = _("pause")
        verbose_name_plural = _("pauses")
        ordering = ["-id"]
        default_permissions = ("view",)
        permissions = [("pause_work", gettext_noop("Can pause and resume handlers, queues and the whole site"))]
        constraints = [models.UniqueConstraint(fields=["scope", "type", "name"], name="scheduling_pause_once")]

    def __str__(self) -> str:
        return self.subject

    @property
    def subject(self) -> str:
        """What is paused, as pages show it."""
        if self.scope == Scope.SITE:
            return _t("Everything")
        kind = _t("queue") if self.scope == Scope.QUEUE else visible_text(self.type, 20)
        return f"{kind} {visible_text(self.name, 100)}"

    def rule(self) -> WorkPause:
        """The values that decide.

        Raises:
            ValueError: plain SQL has written a scope that does not exist.
            OverflowError: plain SQL has written an end outside of the calendar.
        """
        until = None if self.ends_at is None else self.ends_at.astimezone(UTC)
        return WorkPause(Scope(self.scope), self.type, self.name, self.reason, self.paused_by, until)
