"""StartDeadline: by when an execution must have started, until a producer has looked whether it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from django.db import connections, models
from django.utils.translation import gettext_lazy as _

from scheduling.core.lifecycle import State
from scheduling.models.execution import SchedulerExecution


class StartDeadlines(models.Manager["StartDeadline"]):
    """Writes the rows."""

    def note(self, executions: Iterable[SchedulerExecution]) -> None:
        """Note the new executions that have a deadline. Must be called in the transaction that records them."""
        new = [
            StartDeadline(execution=row.pk, start_by=row.start_by)
            for row in executions
            if row.start_by is not None and row.state != State.SKIPPED.value
        ]
        if new:
            # If the table of executions was emptied, a new one may have the id of one whose row is still here.
            unique = ["execution"] if connections[self.db].features.supports_update_conflicts_with_target else None
            self.bulk_create(new, update_conflicts=True, unique_fields=unique, update_fields=["start_by"])


class StartDeadline(models.Model):
    """The deadline of one execution. A sweep removes the row when the deadline has passed.

    An index of the executions would have an entry for each execution, and most have no deadline. So the row has no
    foreign key, either: the execution may be gone before it.
    """

    execution = models.PositiveBigIntegerField(_("execution"), primary_key=True)
    start_by = models.DateTimeField(_("start deadline"), db_index=True)

    objects: ClassVar[StartDeadlines] = StartDeadlines()

    class Meta:
        verbose_name = _("start deadline")
        verbose_name_plural = _("start deadlines")
        ordering = ["start_by"]
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.pk)
