"""Reads the pauses of handlers, queues and the whole site."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from scheduling.core.pauses import WorkPause, pause_of
from scheduling.core.queues import queue_of
from scheduling.logs import get_logger
from scheduling.models import Pause
from scheduling.processes.database import is_away

log = get_logger(__name__)

KEEP_SECONDS = 1.0
"""How long a consumer uses the pauses that it has read. It reads them only when runs arrive."""

MOST_PAUSES = 10_000


def pauses_now(now: datetime) -> list[WorkPause]:
    """All pauses that have not ended."""
    rows = Pause.objects.order_by("pk")[:MOST_PAUSES]
    return [rule for rule in rules_of(rows) if not rule.is_over(now)]


def pause_for(type_: str, handler: str, queue: str, now: datetime) -> WorkPause | None:
    """The pause for which a run waits; None if it may start.

    Args:
        queue: its work queue.
    """
    return pause_of(pauses_now(now), type_, handler, queue_of(queue), now)


class CurrentPauses:
    """The pauses as a consumer knows them. They are read again after `KEEP_SECONDS`."""

    def __init__(self) -> None:
        self._pauses: list[WorkPause] = []
        self._until = 0.0

    def find(self, type_: str, handler: str, queue: str, now: datetime) -> WorkPause | None:
        """The pause for which a run waits; None if it may start. See `pause_for`."""
        if time.monotonic() >= self._until:
            self._pauses = pauses_now(now)
            self._until = time.monotonic() + KEEP_SECONDS
        return pause_of(self._pauses, type_, handler, queue_of(queue), now) if self._pauses else None


def rules_of(rows: QuerySet[Pause]) -> Iterator[WorkPause]:
    """What the rows say. A row that cannot be read is left out, with a warning in the log."""
    try:
        found: list[Any] = list(rows)
    except Exception as error:
        if is_away(error):
            raise
        found = [row for pk in Pause.objects.values_list("pk", flat=True)[:MOST_PAUSES] for row in _readable(pk)]
    for row in found:
        try:
            yield row.rule()
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            log.warning("The pause %s cannot be used: %s", row.pk, error)


def _readable(pk: int) -> list[Pause]:
    try:
        with transaction.atomic():
            return list(Pause.objects.filter(pk=pk))
    except Exception as error:
        if is_away(error):
            raise
        log.warning("The pause %s cannot be read: %s", pk, error)
        return []
