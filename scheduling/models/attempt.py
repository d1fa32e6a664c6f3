"""Attempt: the record of how one attempt of an execution ended."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.setting_values import RELEASE_CHARS


class Attempt(models.Model):
    """How one attempt ended. The row is inserted when the attempt ends, and the row never changes.

    While the attempt runs, the execution's row holds the attempt's start and owner. So each attempt needs only one
    insert in this table. The unique key refuses a second result of the same attempt.
    """

    class Outcome(models.TextChoices):
        SUCCEEDED = "succeeded", _("succeeded")
        FAILED = "failed", _("failed")
        TIMED_OUT = "timed_out", _("timed out")
        CRASHED = "crashed", _("crashed")
        CANCELLED = "cancelled", _("cancelled")
        INTERRUPTED = "interrupted", _("interrupted")
        SNOOZED = "snoozed", _("snoozed")
        SKIPPED = "skipped", _("skipped")
        FAILED_PROBE = "failed_probe", _("failed probe")

    UNCOUNTED = (Outcome.INTERRUPTED.value, Outcome.SNOOZED.value, Outcome.FAILED_PROBE.value)
    """The outcomes of attempts that use up no retry, and after which the execution waits again."""

    execution = models.ForeignKey(
        "scheduling.SchedulerExecution", on_delete=models.CASCADE, related_name="attempts", db_index=False
    )
    number = models.PositiveIntegerField(_("number"))
    started_at = models.DateTimeField(_("started"))
    finished_at = models.DateTimeField(_("finished"))
    consumer = models.CharField(_("consumer"), max_length=128)
    pid = models.PositiveIntegerField(_("process id"), null=True, blank=True)
    outcome = models.CharField(_("outcome"), max_length=16, choices=Outcome.choices)
    exit_code = models.IntegerField(_("exit code"), null=True, blank=True)
    signal = models.PositiveSmallIntegerField(_("signal"), null=True, blank=True)
    error_class = models.CharField(_("error class"), max_length=200, blank=True, default="")
    error_message = models.TextField(_("error"), blank=True, default="")
    traceback = models.TextField(_("traceback"), blank=True, default="")
    retry_at = models.DateTimeField(_("retried at"), null=True, blank=True)
    """When the retry after this attempt is due; NULL if there is no retry."""
    result = models.TextField(_("result"), blank=True, default="")
    """What the handler has returned, as JSON; empty if it has returned nothing that can be stored."""
    release = models.CharField(_("release"), max_length=RELEASE_CHARS, blank=True, default="")
    """The setting CRON_RELEASE of the consumer that ran the attempt; empty if it is unknown."""
    cpu_ms = models.PositiveBigIntegerField(_("CPU time in ms"), null=True, blank=True)
    """The CPU time of the child during the attempt, with that of the processes that the run has waited for."""
    peak_memory_kb = models.PositiveBigIntegerField(_("peak memory in kB"), null=True, blank=True)
    """The most resident memory of the child during the attempt. NULL in both columns: unknown."""
    batch_leader = models.PositiveBigIntegerField(null=True, blank=True, editable=False)
    """The execution that led the batch in which the attempt was called; it has the output of the batch. NULL: the
    attempt was called by itself, or its end was recorded by another process. The execution may be deleted by now."""
    batch_attempt = models.PositiveIntegerField(null=True, blank=True, editable=False)
    """The number of the attempt of `batch_leader`."""
    batch_size = models.PositiveSmallIntegerField(null=True, blank=True, editable=False)
    """How many runs the batch had."""

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        ordering = ["execution", "number"]
        constraints = [models.UniqueConstraint(fields=["execution", "number"], name="scheduling_attempt_once")]

    def __str__(self) -> str:
        return f"{self.execution_id}.{self.number}"
