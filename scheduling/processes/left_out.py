"""Rows that the database refuses to change at all, so that they cannot even be marked as unusable.

If each query returned such a row again, the rows behind it would never be reached. So every process leaves the row out
for a minute. Then it tries the row again, because the row may have been mended. The table of refused rows shows these
rows to operators, and tells the other processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet

from scheduling.core.text import clean
from scheduling.logs import get_logger
from scheduling.models import RefusedRow
from scheduling.processes.database import is_away
from scheduling.processes.unusable_values import read

log = get_logger(__name__)

LEFT_OUT_SECONDS = 60.0

MOST_ROWS = 10_000
"""Each query names the rows that it leaves out. Of more rows than this, the first ones are tried again earlier."""

LOG_KEYS = {RefusedRow.Kind.EXECUTION: "execution", RefusedRow.Kind.SCHEDULER: "scheduler_id"}

Rows = TypeVar("Rows", bound=Model)


class LeftOut:
    """The rows of one kind that this process leaves out now, by primary key.

    Args:
        kind: schedules or executions.
        monotonic: the clock, in seconds.
    """

    def __init__(self, kind: RefusedRow.Kind, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.kind, self._monotonic = kind, monotonic
        self._until: dict[int, float] = {}

    def add(self, pk: int, error: Exception, now: datetime) -> None:
        """Leave a row out for `LEFT_OUT_SECONDS`, and record it. Log it if no process has recorded it before.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        self._leave_out(pk, LEFT_OUT_SECONDS)
        context = {LOG_KEYS[self.kind]: pk}
        said = clean(f"{type(error).__name__}: {error}", 500)
        try:
            with transaction.atomic():
                new = _record(self.kind, pk, said, now)
        except Exception as failure:  # the row is left out all the same
            if is_away(failure):
                raise
            log.exception("A refused row cannot be recorded", extra=context)
            return
        if new:
            log.error("The database refuses to change a row; it is left out: %s", said, extra=context)

    def without(self, rows: QuerySet[Rows]) -> QuerySet[Rows]:
        """The queryset without the rows that are left out now."""
        keys = self.keys()
        return rows.exclude(pk__in=keys) if keys else rows

    def keys(self) -> set[int]:
        """The primary keys of the rows that are left out now."""
        if self._until:
            now = self._monotonic()
            self._until = {pk: until for pk, until in self._until.items() if until > now}
        return set(self._until)

    def learn(self, pk: int, seconds: float) -> None:
        """Leave out a row that another process has tried, for at most this many seconds."""
        if seconds > 0 and pk not in self._until:
            self._leave_out(pk, min(seconds, LEFT_OUT_SECONDS))

    def clear(self) -> None:
        """Forget all rows."""
        self._until.clear()

    def _leave_out(self, pk: int, seconds: float) -> None:
        self._until[pk] = self._monotonic() + seconds
        if len(self._until) > MOST_ROWS:
            del self._until[next(iter(self._until))]


def _record(kind: RefusedRow.Kind, pk: int, error: str, now: datetime) -> bool:
    """Write the row's record. Returns whether it is new. The record of a refusal that was over is replaced."""
    RefusedRow.objects.past(now).filter(kind=kind, row_id=pk).delete()
    seen = {"error": error, "tried_at": now}
    _record, new = RefusedRow.objects.update_or_create(
        kind=kind, row_id=pk, defaults=seen, create_defaults=seen | {"since": now}
    )
    return new


executions = LeftOut(RefusedRow.Kind.EXECUTION)
schedules = LeftOut(RefusedRow.Kind.SCHEDULER)


def tried_lately(now: datetime) -> QuerySet[RefusedRow]:
    """The records of the rows that a process has tried within the last `LEFT_OUT_SECONDS`."""
    return RefusedRow.objects.filter(tried_at__gt=now - timedelta(seconds=LEFT_OUT_SECONDS))


def refresh(now: datetime) -> None:
    """Learn from the table which rows other processes have tried within the last `LEFT_OUT_SECONDS`.

    A record with a value that cannot be used teaches nothing. This process then finds out by itself.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    since = now - timedelta(seconds=LEFT_OUT_SECONDS)
    found, error = read(tried_lately(now).order_by("tried_at")[:MOST_ROWS], ["kind", "row_id", "tried_at"])
    if error is not None:
        log.warning("A record of a refused row cannot be read: %s", error)
    for kind, pk, tried_at in found:
        if type(pk) is int and isinstance(tried_at, datetime):
            for left_out in (executions, schedules):
                if left_out.kind == kind:
                    left_out.learn(pk, (tried_at - since).total_seconds())
