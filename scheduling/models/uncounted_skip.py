"""UncountedSkip: occurrences that were skipped, until a producer has tallied them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from django.db import models
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.core.lifecycle import State
from scheduling.core.queues import WORK_QUEUE_LENGTH
from scheduling.core.skip_reasons import kind_of
from scheduling.core.tallies import REASON_CHARS
from scheduling.models.execution import SchedulerExecution


class UncountedSkips(models.Manager["UncountedSkip"]):
    """Writes the rows."""

    def note(self, executions: Iterable[SchedulerExecution]) -> None:
        """Note those of the new executions that are skipped. Must be called in the transaction that records them.

        An execution that stands for several occurrences is noted with their number.
        """
        at = int(clock.now().timestamp())
        self.bulk_create(
            UncountedSkip(
                at=at, number=max(row.missed, 1), reason=kind_of(row.reason).value, schedule=row.scheduler_id,
                type=row.type, target=row.target_name, queue=row.queue, group=row.group_id,
            )
            for row in executions if row.state == State.SKIPPED.value
        )  # fmt: skip


class UncountedSkip(models.Model):
    """Occurrences that were skipped together. The transaction that tallies them removes the row.

    So each of them is counted once, although the number in the row of a skipped execution grows while a run goes on,
    and retention may remove this execution at any time.
    """

    at = models.PositiveBigIntegerField(_("recorded"))
    """When they were recorded, in seconds since 1970. The drivers can read each number that plain SQL can write."""
    number = models.PositiveBigIntegerField(_("occurrences"), default=1)
    reason = models.CharField(_("reason"), max_length=REASON_CHARS)
    """A `core.skip_reasons.SkipReason`."""
    schedule = models.PositiveBigIntegerField(_("schedule"), null=True, blank=True)
    type = models.CharField(_("type"), max_length=8)
    target = models.CharField(_("target"), max_length=200)
    queue = models.CharField(_("queue"), max_length=WORK_QUEUE_LENGTH)
    group = models.PositiveBigIntegerField(_("user group"), null=True, blank=True)

    objects: ClassVar[UncountedSkips] = UncountedSkips()

    class Meta:
        verbose_name = _("skipped occurrences without a tally")
        verbose_name_plural = _("skipped occurrences without a tally")
        ordering = ["id"]
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.pk)
