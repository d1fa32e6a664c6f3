"""SchedulerExecution: the row that follows one occurrence to its end."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.lifecycle import State
from scheduling.core.text import shown


class ExecutionQuerySet(models.QuerySet["SchedulerExecution"]):
    """Verbs of the glossary."""

    def in_state(self, *states: State) -> ExecutionQuerySet:
        """Rows in one of the states."""
        return self.filter(state__in=[str(state) for state in states])

    def overdue(self, state: State, now: datetime) -> ExecutionQuerySet:
        """Rows of a state whose time to move on by themselves has passed, the oldest first."""
        return self.filter(state=str(state), wake_at__lte=now).order_by("wake_at", "id")


class SchedulerExecution(models.Model):
    """One occurrence, from its claim to its end (docs/lifecycle.md).

    The row is the truth; a message is a hint. Every change of `state` is a compare-and-set on
    the state (and, once it runs, the attempt) that the writer saw.
    """

    class Queue(models.TextChoices):
        MAIN = "main", _("main")
        STANDALONE = "standalone", _("standalone")
        IMMEDIATE = "immediate", _("immediate retry")

    scheduler = models.ForeignKey(
        "scheduling.Scheduler",
        null=True,
        on_delete=models.SET_NULL,
        related_name="executions",
        db_index=False,
        verbose_name=_("schedule"),
    )
    execution_key = models.CharField(_("execution key"), max_length=64)
    scheduled_at = models.DateTimeField(_("scheduled"))
    trigger = models.CharField(_("trigger"), max_length=8)
    requested_by = models.CharField(_("requested by"), max_length=150, blank=True, default="")

    type = models.CharField(_("type"), max_length=8)
    target_id = models.PositiveBigIntegerField(_("target"), null=True)
    target_name = models.CharField(_("target"), max_length=200, blank=True, default="")
    params = models.JSONField(_("parameters"), default=dict, blank=True)

    executed_at = models.DateTimeField(_("claimed"))
    container_id = models.CharField(_("claimed by"), max_length=128)
    queue = models.CharField(_("queue"), max_length=10, choices=Queue.choices, default=Queue.MAIN)
    published_at = models.DateTimeField(_("published"), null=True, blank=True)
    """When the broker confirmed the message of the next attempt."""

    state = models.CharField(_("state"), max_length=10, choices=[(state.value, state.value) for state in State])
    wake_at = models.DateTimeField(null=True, blank=True)
    """When the row must move on: queued, it may start; retrying, the retry is due; running, the
    lease ends; claimed, publishing is overdue. NULL when nothing is to happen by itself."""
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    retry_base = models.PositiveIntegerField(default=0)
    """Attempts that do not count as retries: those before the last republish, and interrupted ones."""
    consumer = models.CharField(_("consumer"), max_length=128, blank=True, default="")
    pid = models.PositiveIntegerField(_("process id"), null=True, blank=True)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    progress = models.CharField(_("progress"), max_length=64, blank=True, default="")

    error_class = models.CharField(_("error class"), max_length=200, blank=True, default="")
    error_message = models.TextField(_("error"), blank=True, default="")
    fingerprint = models.CharField(_("error group"), max_length=40, blank=True, default="")
    reason = models.TextField(_("reason"), blank=True, default="")
    """Why it was skipped, given up, cancelled or discarded: a sentence for operators."""
    missed = models.PositiveIntegerField(_("missed occurrences"), default=0)
    """How many missed occurrences a skipped row stands for."""
    cancel_requested_by = models.CharField(_("cancel requested by"), max_length=150, blank=True, default="")

    objects: ClassVar[models.Manager[SchedulerExecution]] = ExecutionQuerySet.as_manager()

    class Meta:
        verbose_name = _("execution")
        verbose_name_plural = _("executions")
        ordering = ["-id"]
        constraints = [
            # The claim: whoever inserts the row of an occurrence has it; everybody else is refused.
            models.UniqueConstraint(fields=["scheduler", "execution_key"], name="scheduling_execution_claim")
        ]
        indexes = [
            models.Index(fields=["state", "queue", "wake_at", "id"], name="scheduling_exec_wake"),
            models.Index(fields=["scheduler", "-id"], name="scheduling_exec_scheduler"),
            models.Index(fields=["state", "-id"], name="scheduling_exec_state"),
        ]
        permissions = [
            ("rerun_execution", "Can run an execution again"),
            ("cancel_execution", "Can cancel an execution"),
        ]

    def __str__(self) -> str:
        return shown(f"{self.target_name or self.type} {self.execution_key}")

    @property
    def retry_count(self) -> int:
        """Retries so far since the last (re)publish; 0 during a first attempt."""
        return max(0, self.attempt - self.retry_base - 1)


class FailedExecution(SchedulerExecution):
    """The failed inbox: the same rows, with its own page and permissions."""

    class Meta:
        proxy = True
        verbose_name = _("failed execution")
        verbose_name_plural = _("failed inbox")
        permissions = [
            ("republish_failedexecution", "Can republish a failed execution"),
            ("discard_failedexecution", "Can discard a failed execution"),
        ]
