"""The slow round over all schedules: it finds what plain SQL has changed, made or deleted, for the revisions.

The sweep that plans schedules finds a change of their times within seconds. Nothing marks a change of other columns,
such as the params. So each producer compares every row with its newest revision, a few rows with each sweep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from scheduling.execution.revision_state import READ_COLUMNS, stored_of, target_of
from scheduling.execution.revisions import despite_bad_values, differs, note_deleted, note_found
from scheduling.handlers.targets import target_names
from scheduling.logs import get_logger
from scheduling.models import Scheduler, ScheduleRevision
from scheduling.models.author import PLAIN_SQL
from scheduling.models.schedule_revision import RevisionKind
from scheduling.processes.database import is_away
from scheduling.processes.unusable_values import read_each

log = get_logger(__name__)


class ChangedSchedules:
    """Goes round, a part with each call of `turn`.

    Args:
        rows: how many schedules a turn reads.
        pause: the least time between the beginnings of two rounds, in seconds.
        monotonic: a clock in seconds.
    """

    def __init__(self, rows: int = 500, pause: float = 300.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rows, self._pause, self._monotonic = rows, pause, monotonic
        self._after: int | None = None
        """The last schedule that this round has read; None between two rounds."""
        self._next_round = 0.0

    def turn(self, now: datetime) -> int:
        """Read the next schedules. Returns how many revisions were written.

        Raises:
            django.db.DatabaseError: the database is away.
        """
        if self._after is None:
            if self._monotonic() < self._next_round:
                return 0
            self._after, self._next_round = 0, self._monotonic() + self._pause
        after = self._after
        keys = list(Scheduler.objects.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[: self._rows])
        is_last = len(keys) < self._rows
        self._after = None if is_last else keys[-1]
        span = Q(schedule__gt=after) if is_last else Q(schedule__gt=after, schedule__lte=keys[-1])
        newest = {row.schedule: row for row in _readable(ScheduleRevision.objects.newest_of(where=span))}
        changed = [pk for pk in _changed(keys, newest) if note_found(pk, now) is not None]
        gone = [row for pk, row in newest.items() if row.kind != RevisionKind.DELETED and pk not in set(keys)]
        return len(changed) + sum(_deleted(row, now) for row in gone)


def _readable(rows: QuerySet[ScheduleRevision]) -> list[ScheduleRevision]:
    """The revisions, without those that plain SQL has made unreadable."""
    try:
        with transaction.atomic():
            return list(rows)
    except Exception as error:
        if is_away(error):
            raise
    found: list[ScheduleRevision] = []
    for pk in list(rows.values_list("pk", flat=True)):
        try:
            with transaction.atomic():
                found += ScheduleRevision.objects.filter(pk=pk)
        except Exception as error:
            if is_away(error):
                raise
            log.debug("A revision cannot be read: %s", error, extra={"revision": pk})
    return found


def _changed(keys: Sequence[int], newest: dict[int, ScheduleRevision]) -> Iterable[int]:
    """The schedules that differ from their newest revisions. A row that cannot be read is left to other sweeps."""
    found, unreadable = read_each(Scheduler.objects.all(), keys, list(READ_COLUMNS)) if keys else ([], {})
    if unreadable:
        log.debug("Schedules that cannot be read are not compared: %s", sorted(unreadable))
    rows: list[dict[str, Any]] = [dict(zip(READ_COLUMNS, values, strict=True)) for values in found]
    try:
        names = target_names(target_of(row) for row in rows)
    except Exception as error:
        if is_away(error):
            raise
        names = None  # plain SQL has written a key that is no number
    for row in rows:
        try:
            if differs(stored_of(row, names), newest.get(row["pk"])):
                yield row["pk"]
        except Exception as error:
            if is_away(error):
                raise
            log.debug("A schedule is not compared with its revision: %s", error, extra={"scheduler_id": row["pk"]})


def _deleted(row: ScheduleRevision, now: datetime) -> int:
    """Note that plain SQL has deleted the schedule of this newest revision. Returns how many revisions were written."""
    with despite_bad_values(row.schedule), transaction.atomic():
        # Another process may have noted it, or may be about to commit a new schedule with its first revision.
        newest = ScheduleRevision.objects.of(row.schedule).select_for_update().first()
        if newest is None or newest.pk != row.pk or Scheduler.objects.filter(pk=row.schedule).exists():
            return 0
        note_deleted(newest, PLAIN_SQL, now)
        log.info("Plain SQL has deleted a schedule", extra={"scheduler_id": row.schedule})
        return 1
    return 0
