"""Finds due retries that start from the executions table, without a message from the broker.

There are two kinds of such retries:

- The retry of a crashed run. The run has waited in the broker's queue once, and its retry should not wait there again.
- A retry whose message the broker did not confirm. It must run even while publishing is impossible.

The broker may also deliver a message for the same attempt. The compare-and-set at the start then allows only one start.

Hundreds of consumers may be idle, so an idle consumer does not query for such retries each second. It learns of them
in three ways: the producer that recovers a crashed run publishes the retry, which an idle consumer gets at once; this
consumer remembers its own retries that were not confirmed; and the heartbeat asks whether there are others. A consumer
that takes messages queries at most once a second, and so does one that the broker cannot reach now.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from scheduling.broker import Broker, Delivery
from scheduling.core.lifecycle import State
from scheduling.core.outcome import Crashed
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.processes import left_out
from scheduling.processes.set_aside import read_rows

RETRY_POLL_SECONDS = 1.0
"""The shortest time between two queries."""

EXPECTED_FOR = timedelta(seconds=5)
"""How long after its time this consumer looks for a retry whose message was not confirmed. Later, a heartbeat finds
it."""

DUE = "due retries"


class Rescue:
    """Finds the due retries of some work queues. It makes at most one query a second."""

    def __init__(self, broker: Broker, queues: Sequence[str]) -> None:
        self._broker, self._queues = broker, tuple(queues)
        self._look_at = 0.0
        self._waiting = False
        self._expected_until: datetime | None = None

    def questions(self, now: datetime) -> dict[str, QuerySet]:
        """What this consumer's heartbeat asks the database; nothing with the database transport."""
        return {} if self._broker.embedded else {DUE: self._rows(now)}

    def told(self, found: Collection[str]) -> None:
        """Take over the heartbeat's answers: the names of the questions whose queryset has a row."""
        self._waiting = DUE in found

    def expect(self, due: datetime) -> None:
        """Look for a retry whose message the broker did not confirm."""
        self._expected_until = max(due + EXPECTED_FOR, self._expected_until or due)

    def due(self, now: datetime) -> bool:
        """Whether to query now, although the broker has delivered nothing.

        False with the database transport, because its queue is the table.
        """
        if self._broker.embedded or time.monotonic() < self._look_at:
            return False
        if self._waiting or not self._broker.receiving:
            return True
        return self._expected_until is not None and now <= self._expected_until

    def take(self, limit: int, now: datetime) -> list[Delivery]:
        """Return at most `limit` due retries as deliveries without a tag, because the broker expects no answer."""
        if limit < 1 or self._broker.embedded or time.monotonic() < self._look_at:
            return []
        self._look_at = time.monotonic() + RETRY_POLL_SECONDS
        found = read_rows(self._rows(now).order_by("wake_at", "id")[:limit], now)
        self._waiting = len(found) == limit
        return [Delivery(message_of(row), from_row=True, queue=row.queue) for row in found]

    def _rows(self, now: datetime) -> QuerySet[SchedulerExecution]:
        rows = SchedulerExecution.objects.filter(
            Q(published_at=None) | Q(error_class=Crashed.error_class),
            state=State.RETRYING.value,
            queue__in=self._queues,
            wake_at__lte=now,
        )
        return left_out.executions.without(rows)
