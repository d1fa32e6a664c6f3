"""What several checks look at. It is read once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.db.models import DateTimeField, Value

from scheduling.models import Process
from scheduling.models.counts import Count, counts
from scheduling.monitoring.findings.watched import WATCHED, Rows, failed

LOOKED_AT = 1_000
"""How many of the newest failures in the inbox the checks look at."""


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
    """The state of the installation at `now`, as far as several checks need it."""

    now: datetime

    @cached_property
    def alive(self) -> list[Process]:
        """The alive processes, the newest first."""
        return list(Process.objects.alive(self.now))

    def count(self, rows: Rows) -> Count:
        """How many of these rows there are.

        Args:
            rows: one of `watched.WATCHED`.
        """
        return self._counts[rows]

    @cached_property
    def _counts(self) -> dict[Rows, Count]:
        return counts({rows: rows(self.now) for rows in WATCHED})

    @cached_property
    def failures(self) -> list[Failed]:
        """The newest failures, the newest first: at most one more than `LOOKED_AT`."""
        if not self.count(failed):
            return []
        rows = failed(self.now).order_by("-pk")
        try:
            return [Failed(*values) for values in rows.values_list(*Failed._fields)[: LOOKED_AT + 1]]
        except ValueError:
            # Plain SQL has written an instant that Python cannot read. The other columns are numbers and texts.
            without = ["ended" if name == "finished_at" else name for name in Failed._fields]
            rows = rows.annotate(ended=Value(None, output_field=DateTimeField()))
            return [Failed(*values) for values in rows.values_list(*without)[: LOOKED_AT + 1]]
