"""What several checks look at. It is read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import DateTimeField, QuerySet, Value

from scheduling.core.lifecycle import State
from scheduling.models import (
    Alert,
    AlertMessage,
    Calendar,
    Channel,
    MovedRun,
    Ping,
    Process,
    RefusedRow,
    Scheduler,
    SchedulerExecution,
)
from scheduling.models.counts import Count, PreparedCounts, counts
from scheduling.models.newest import in_parts, newest_values
from scheduling.models.used_queues import used_queues
from scheduling.models.visibility import EVERYTHING, Visibility
from scheduling.monitoring.findings.watched import ALWAYS, WATCHED, Rows, failed, in_other_queues

LOOKED_AT = 1_000
"""How many of the newest failures in the inbox the checks look at."""


OF_GROUPS = (Scheduler, SchedulerExecution, Alert, MovedRun, Calendar, Channel)
"""The models whose rows have a group."""


class Failed(NamedTuple):
    """The columns of a failure in the inbox that the checks need."""

    fingerprint: str
    pk: int
    finished_at: datetime | None
    type: str
    target_name: str
    scheduler_id: int | None
    error_class: str


@dataclass
class Present:
    """The state of the installation at `now`, as far as several checks need it.

    Args:
        visible: whose rows count. Processes belong to no group: every user sees them.
        watched: the rows that the first statement counts.
        prepared: counts of rows of all groups, by a statement that is built once, beside those of `watched`.
    """

    now: datetime
    visible: Visibility = EVERYTHING
    watched: Sequence[Rows] = WATCHED
    prepared: PreparedCounts[Rows] | None = None

    @cached_property
    def alive(self) -> list[Process]:
        """The alive processes, the newest first."""
        return list(Process.objects.alive(self.now))

    def rows(self, rows: Rows) -> QuerySet[Any]:
        """Those of the rows that are seen.

        Args:
            rows: one of `watched.WATCHED`.
        """
        found = rows(self.now)
        if found.model is Ping:
            return self.visible.of_executions(found)
        if found.model is RefusedRow:
            return self.visible.refused_rows(found)
        if found.model is AlertMessage:
            return found.filter(self.visible.condition("channel__"))
        return self.visible.only(found) if found.model in OF_GROUPS else found

    def _parts(self, rows: Rows) -> list[QuerySet[Any]]:
        found = rows(self.now)
        return in_parts(found, self.visible) if found.model is SchedulerExecution else [self.rows(rows)]

    def count(self, rows: Rows) -> Count:
        """How many of these rows there are. Those of `watched` are all counted by one statement."""
        if rows not in self._counts:
            self._counts |= counts({rows: self._parts(rows)})
        return self._counts[rows]

    @cached_property
    def _counts(self) -> dict[Rows, Count]:
        found = {} if self.prepared is None else self.prepared.find()
        return found | counts({rows: self._parts(rows) for rows in self.watched})

    def counts(self, rows: Mapping[str, QuerySet[Any]]) -> dict[str, Count]:
        """How many of these executions are seen under each name. One statement counts them."""
        return counts({name: in_parts(found, self.visible) for name, found in rows.items()})

    def used_queues(self, *states: State) -> list[str]:
        """The work queues of the executions in these states, in alphabetical order.

        Those that every installation uses are left out. If nothing waits in another one, only counts are read.
        """
        if not any(self.count(rows) for rows in in_other_queues):
            return []
        found = used_queues(states, self.visible.only(SchedulerExecution.objects.all()))
        return [queue for queue in found if queue not in ALWAYS]

    @cached_property
    def failures(self) -> list[Failed]:
        """The newest failures, the newest first: at most one more than `LOOKED_AT`."""
        if not self.count(failed):
            return []
        rows, most = failed(self.now), LOOKED_AT + 1
        try:
            return [Failed(*values) for values in newest_values(rows, self.visible, Failed._fields, most)]
        except ValueError:
            # Plain SQL has written an instant that Python cannot read. The other columns are numbers and texts.
            without = ["ended" if name == "finished_at" else name for name in Failed._fields]
            rows = rows.annotate(ended=Value(None, output_field=DateTimeField()))
            return [Failed(*values) for values in newest_values(rows, self.visible, without, most)]
