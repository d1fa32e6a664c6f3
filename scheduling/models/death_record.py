"""DeathRecord: the header `x-death` of the message for which an execution was made or set to failed."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class DeathRecord(models.Model):
    """The entries of `x-death`, as the message had them. The message may leave the queue afterwards.

    The record has a table of its own for three reasons. First, only few of many executions have one. Second, the rows
    of executions are read often, and no reader but one page needs the entries. Third, plain SQL may write any value
    into a JSON column, and an unusable value in the execution's row would stop the execution.
    """

    execution = models.ForeignKey(
        "scheduling.SchedulerExecution", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    entries = models.JSONField(_("x-death"))
    """A list of `core.deaths.Death.entry()`, the newest first."""

    class Meta:
        verbose_name = _("record of x-death")
        verbose_name_plural = _("records of x-death")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["execution"], name="scheduling_death_record_once")]

    def __str__(self) -> str:
        return str(self.execution_id)
