"""Finds due retries that start from the executions table, without a message from the broker.

There are two kinds of such retries:

- The retry of a crashed run. The run has waited in the broker's queue once, and its retry should not wait there again.
- A retry whose message the broker did not confirm. It must run even while publishing is impossible.

The broker may also deliver a message for the same attempt. The compare-and-set at the start then allows only one start.
"""

from __future__ import annotations

import time
from datetime import datetime

from django.db.models import Q

from scheduling.broker import Broker, Delivery
from scheduling.core.lifecycle import State
from scheduling.core.outcome import Crashed
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.processes import left_out
from scheduling.processes.set_aside import read_rows

RETRY_POLL_SECONDS = 1.0
"""The shortest time between two queries."""


class Rescue:
    """Finds the due retries of one queue. It makes at most one query a second."""

    def __init__(self, broker: Broker, queue: str) -> None:
        self._embedded, self._queue = broker.embedded, queue
        self._look_at = 0.0

    def due(self) -> bool:
        """Whether it is time for the next query. False with the database transport, because its queue is the table."""
        return not self._embedded and time.monotonic() >= self._look_at

    def take(self, limit: int, now: datetime) -> list[Delivery]:
        """Return at most `limit` due retries as deliveries without a tag, because the broker expects no answer."""
        if limit < 1 or not self.due():
            return []
        self._look_at = time.monotonic() + RETRY_POLL_SECONDS
        rows = SchedulerExecution.objects.filter(
            Q(published_at=None) | Q(error_class=Crashed.error_class),
            state=State.RETRYING.value,
            queue=self._queue,
            wake_at__lte=now,
        )
        waiting = left_out.executions.without(rows).order_by("wake_at", "id")
        return [Delivery(message_of(row), from_row=True) for row in read_rows(waiting[:limit], now)]
