"""SchedulerExecution: the row that records one occurrence, from its claim to its end."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from scheduling.core.headers import usable
from scheduling.core.keys import KEY_LENGTH
from scheduling.core.lifecycle import State, Trigger, check_move
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import PROGRESS_LENGTH
from scheduling.core.queues import IMMEDIATE, MAIN, STANDALONE, WORK_QUEUE_LENGTH
from scheduling.core.text import visible_text
from scheduling.models.labels import STATES, TRIGGERS, TYPES, queue_label
from scheduling.models.used_group import group_column


class ExecutionQuerySet(models.QuerySet["SchedulerExecution"]):
    """Filters of executions."""

    def in_state(self, *states: State) -> ExecutionQuerySet:
        """Rows in one of the states."""
        return self.filter(state__in=[str(state) for state in states])

    def move(self, origins: Iterable[State], to: State, **columns: Any) -> int:
        """Move the rows that are in one of the states `origins` to the state `to`, and set further columns.

        Returns:
            How many rows were moved. Each move is a compare-and-set, so a row that is no longer in one of `origins` is
            not moved.

        Raises:
            ValueError: `core.lifecycle.MOVES` does not allow the move.
        """
        check_move(origins, to)
        return self.in_state(*origins).update(state=to.value, **columns)

    def overdue(self, state: State, now: datetime) -> ExecutionQuerySet:
        """Rows in this state whose `wake_at` has passed, the oldest `wake_at` first."""
        return self.filter(state=str(state), wake_at__lte=now).order_by("wake_at", "id")


class SchedulerExecution(models.Model):
    """One occurrence, from its claim to its end (docs/lifecycle.md).

    The row alone decides what happens; a message only asks for an attempt. Every change of `state` is a compare-and-set
    on `state`. For a running execution, it also compares `attempt`.
    """

    class Queue(StrEnum):
        MAIN = MAIN
        STANDALONE = STANDALONE
        IMMEDIATE = IMMEDIATE

    scheduler = models.ForeignKey(
        "scheduling.Scheduler",
        null=True,
        on_delete=models.SET_NULL,
        related_name="executions",
        db_index=False,
        verbose_name=_("schedule"),
    )
    group = group_column(db_index=False)
    """The schedule's group at the time of the claim. It never changes: see `models.visibility`."""
    execution_key = models.CharField(_("execution key"), max_length=64)
    scheduled_at = models.DateTimeField(_("scheduled"))
    """The due instant. Of a schedule it is the nominal one, which the times of the schedule name and the key holds."""
    assigned_at = models.DateTimeField(_("assigned"), null=True, editable=False)
    """When it was to start, if this is later than `scheduled_at`: its schedule is spread, or a calendar held it."""
    trigger = models.CharField(_("trigger"), max_length=8, choices=TRIGGERS)
    revision = models.PositiveIntegerField(_("revision"), null=True, blank=True, editable=False)
    """The number of the schedule's revision (`ScheduleRevision`) that planned it. NULL: it has no schedule, or the
    schedule had no revision yet."""
    key = models.CharField(max_length=KEY_LENGTH, null=True, blank=True, editable=False, unique=True)
    """The key that code gave to a run of its own (`scheduling.api`). The constraint with the schedule does not hold for
    these runs, because they have no schedule. NULL: no key, or the key is free again."""
    requested_by = models.CharField(_("requested by"), max_length=150, blank=True, default="")

    type = models.CharField(_("type"), max_length=8, choices=TYPES)
    target_id = models.PositiveBigIntegerField(_("target"), null=True)
    target_name = models.CharField(_("target"), max_length=200, blank=True, default="")
    params = models.JSONField(_("parameters"), default=dict, blank=True)

    headers = models.JSONField(_("headers"), null=True, blank=True)
    """Texts that accompany the run (`core.headers`), from code or from a message; NULL: none."""

    executed_at = models.DateTimeField(_("claimed"))
    container_id = models.CharField(_("claimed by"), max_length=128)
    queue = models.CharField(_("queue"), max_length=WORK_QUEUE_LENGTH, default=Queue.MAIN.value)
    """The work queue, which names the queue and the priority (`core.queues`)."""
    published_at = models.DateTimeField(_("published"), null=True, blank=True)
    """When the broker confirmed the message of the next attempt. In a failed row, NULL means that the broker has not
    confirmed a parked message yet."""

    state = models.CharField(_("state"), max_length=10, choices=STATES)
    wake_at = models.DateTimeField(null=True, blank=True)
    """The time at which the next step is due. The step depends on the state: a queued row may start, a retry may start,
    the lease of a running row is over, a claimed row must be published again, or a sweep looks at a blocked row. NULL
    if the row waits for nothing."""
    start_by = models.DateTimeField(_("start deadline"), null=True, blank=True)
    """The start deadline: the first attempt may not start after it. Later attempts may. NULL if there is none."""
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    retry_base = models.PositiveIntegerField(default=0)
    """How many attempts the retry policy does not count: attempts before the last republish, interrupted
    attempts, and those that have snoozed."""
    consumer = models.CharField(_("consumer"), max_length=128, blank=True, default="")
    pid = models.PositiveIntegerField(_("process id"), null=True, blank=True)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)
    progress = models.CharField(_("progress"), max_length=PROGRESS_LENGTH, blank=True, default="")

    error_class = models.CharField(_("error class"), max_length=200, blank=True, default="")
    error_message = models.TextField(_("error"), blank=True, default="")
    fingerprint = models.CharField(_("error group"), max_length=40, blank=True, default="")
    reason = models.TextField(_("reason"), blank=True, default="")
    """Why the execution was skipped, given up, cancelled or discarded: a sentence for operators."""
    missed = models.PositiveIntegerField(_("missed occurrences"), default=0)
    """How many missed occurrences a skipped row represents."""
    deferred_at = models.DateTimeField(null=True, blank=True)
    """When the next attempt was first put off, because a consumer does not have the code for it; otherwise NULL."""
    snoozes = models.PositiveIntegerField(_("times snoozed"), default=0, db_default=0)
    """How often the handler was not ready since the last republish (`core.snooze`)."""
    waits_for = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    """The id of the schedule for which a blocked execution waits (`core.after`); NULL if it waits for none."""
    cancel_requested_by = models.CharField(_("cancel requested by"), max_length=150, blank=True, default="")

    objects: ClassVar[models.Manager[SchedulerExecution]] = ExecutionQuerySet.as_manager()

    class Meta:
        verbose_name = _("execution")
        verbose_name_plural = _("executions")
        ordering = ["-id"]
        constraints = [
            # This key makes claims unique: the first producer inserts the occurrence's row, and a second insert fails.
            models.UniqueConstraint(fields=["scheduler", "execution_key"], name="scheduling_execution_claim")
        ]
        indexes = [
            models.Index(fields=["state", "queue", "wake_at", "id"], name="scheduling_exec_wake"),
            models.Index(fields=["scheduler", "-id"], name="scheduling_exec_scheduler"),
            models.Index(fields=["state", "-id"], name="scheduling_exec_state"),
            # For users who see some groups only: the newest executions of a group in a state, and their number.
            models.Index(fields=["group", "state", "-id"], name="scheduling_exec_group"),
        ]
        permissions = [
            ("rerun_execution", gettext_noop("Can run an execution again")),
            ("cancel_execution", gettext_noop("Can cancel an execution")),
        ]

    def __str__(self) -> str:
        return visible_text(f"{self.target_name or self.type} {self.execution_key}")

    @property
    def should_start_at(self) -> datetime:
        """When it was to start: the assigned instant, or else the due one. A run of a backfill: when it was made."""
        return self.executed_at if self.trigger == Trigger.BACKFILL.value else self.assigned_at or self.scheduled_at

    @property
    def queue_label(self) -> str:
        """The queue and the priority, as pages show them."""
        return queue_label(self.queue)

    @property
    def retry_count(self) -> int:
        """How many retries have started; 0 during the first attempt. A republish sets the number to zero."""
        return max(0, self.attempt - self.retry_base - 1)


MESSAGE_COLUMNS = (
    "id", "type", "target_id", "scheduler_id", "params", "attempt", "retry_base", "execution_key", "scheduled_at",
    "trigger", "group_id", "headers",
)  # fmt: skip
"""The columns that `message_of` reads."""


def message_of(row: SchedulerExecution | Any) -> TaskMessage:
    """The message for the row's next attempt.

    Args:
        row: an execution, or a named tuple with the columns `MESSAGE_COLUMNS`.
    """
    # Plain SQL can write any number, and SQLite stores any type. No comparison with such a number matches, and no
    # result of such an attempt can be stored.
    if type(row.attempt) is not int or row.attempt < 0:
        raise ValueError(f"attempt is no whole number: {row.attempt!r:.50}")
    return TaskMessage(
        type=row.type,
        id=row.target_id or 0,
        scheduler_id=row.scheduler_id,
        params=row.params,
        execution_id=row.id,
        attempt=row.attempt + 1,
        execution_key=row.execution_key,
        scheduled_at=row.scheduled_at,
        trigger=row.trigger,
        retry_count=max(0, row.attempt - row.retry_base),
        group_id=row.group_id,
        headers={} if row.headers is None else usable(row.headers),
    )


class FailedExecution(SchedulerExecution):
    """The failed inbox: failed executions, with a page and permissions of their own."""

    class Meta:
        proxy = True
        verbose_name = _("failed execution")
        verbose_name_plural = _("failed inbox")
        permissions = [
            ("republish_failedexecution", gettext_noop("Can republish a failed execution")),
            ("discard_failedexecution", gettext_noop("Can discard a failed execution")),
        ]
