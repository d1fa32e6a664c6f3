"""Rows that the database refuses to change at all, so that they cannot even be marked as unusable.

For example, a trigger of the project refuses them, or a CHECK constraint that was off when the row was written. If each
query returned such a row again, the rows behind it would never be reached. So this process leaves the row out for a
minute. Then it tries the row again, because the row may have been mended.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from django.db.models import Model, QuerySet

from scheduling.logs import get_logger

log = get_logger(__name__)

LEFT_OUT_SECONDS = 60.0

Rows = TypeVar("Rows", bound=Model)


class LeftOut:
    """Primary keys of one table.

    Args:
        name: the key of a log line's context, for example `execution`.
    """

    def __init__(self, name: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._name, self._monotonic = name, monotonic
        self._until: dict[int, float] = {}
        self._said: set[int] = set()

    def add(self, pk: int, error: Exception) -> None:
        """Leave a row out for `LEFT_OUT_SECONDS`. Log it once."""
        self._until[pk] = self._monotonic() + LEFT_OUT_SECONDS
        if pk not in self._said:
            self._said.add(pk)
            log.error("The database refuses to change a row; it is left out: %s", error, extra={self._name: pk})

    def without(self, rows: QuerySet[Rows]) -> QuerySet[Rows]:
        """The queryset without the rows that are left out now."""
        if not self._until:
            return rows
        now = self._monotonic()
        self._until = {pk: until for pk, until in self._until.items() if until > now}
        return rows.exclude(pk__in=list(self._until)) if self._until else rows

    def clear(self) -> None:
        """Forget all rows."""
        self._until.clear()
        self._said.clear()


executions = LeftOut("execution")
schedules = LeftOut("scheduler_id")
