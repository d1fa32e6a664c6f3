"""Tally: how many attempts of one series ended in one hour, and how many occurrences were skipped."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from scheduling.core.tallies import OUTCOME_CHARS, QUEUE_CHARS, REASON_CHARS, TARGET_CHARS, TYPE_CHARS
from scheduling.core.text import visible_text


class Amounts(models.Model):
    """The numbers that are counted."""

    attempts = models.PositiveBigIntegerField(_("attempts"), default=0)
    milliseconds = models.PositiveBigIntegerField(_("duration in ms"), default=0)
    """The sum of the durations."""
    retries = models.PositiveBigIntegerField(_("retries"), default=0)
    """How many of the attempts were retries."""
    unheard = models.PositiveBigIntegerField(_("events without a listener"), default=0)

    class Meta:
        abstract = True


AMOUNTS = tuple(field.name for field in Amounts._meta.local_fields)


class Tally(Amounts):
    """The attempts of one series in one hour, or its skipped occurrences, which have no attempts.

    Producers count them (`execution.tallying`, `execution.skip_tallying`). Nothing else writes them.

    `cleanup_executions` removes the row after CRON_TALLY_DAYS. The attempts stay counted in `TallyTotal`.
    """

    key = models.CharField(max_length=64, unique=True, editable=False)
    """The hash of all columns of the series (`core.tallies.Series`)."""
    hour = models.DateTimeField(_("hour"), db_index=True)
    """The beginning of the UTC hour in which the attempts ended."""
    schedule = models.PositiveBigIntegerField(_("schedule"), null=True, blank=True)
    """The id of the schedule, which may be deleted; NULL for runs without a schedule."""
    type = models.CharField(_("type"), max_length=TYPE_CHARS)
    target = models.CharField(_("target"), max_length=TARGET_CHARS)
    """The name of the target, with visible characters only."""
    queue = models.CharField(_("queue"), max_length=QUEUE_CHARS)
    """The queue, without a priority."""
    group = models.PositiveBigIntegerField(_("user group"), null=True, blank=True)
    """The id of the group whose members see the executions; NULL if they belong to no group."""
    outcome = models.CharField(_("outcome"), max_length=OUTCOME_CHARS)
    """A value of `Attempt.Outcome`, or `unreadable`."""
    bucket = models.PositiveSmallIntegerField(_("duration"))
    """The place of the duration in `core.tallies.BOUNDS`."""
    reason = models.CharField(_("reason"), max_length=REASON_CHARS, default="", db_default="")
    """The class of the error of failed attempts, or a `core.skip_reasons.SkipReason`; empty for all others."""
    failures = models.PositiveBigIntegerField(_("failures for good"), default=0, db_default=0)
    """How many of the attempts failed, and no retry followed."""
    skips = models.PositiveBigIntegerField(_("skipped occurrences"), default=0, db_default=0)

    objects: ClassVar[models.Manager[Tally]] = models.Manager()

    class Meta:
        verbose_name = _("tally")
        verbose_name_plural = _("tallies")
        ordering = ["-id"]
        default_permissions = ()
        indexes = [
            models.Index(fields=["queue", "-id"], name="scheduling_tally_queue"),
            # For the review: the failures and the skipped occurrences of some days, which are few.
            models.Index(fields=["outcome", "hour"], name="scheduling_tally_outcome"),
        ]

    def __str__(self) -> str:
        return f"{visible_text(self.type, TYPE_CHARS)} {visible_text(self.target, TARGET_CHARS)} {self.hour}"


TALLY_AMOUNTS = (*AMOUNTS, "failures", "skips")
"""The numbers of a tally. The totals have fewer."""
