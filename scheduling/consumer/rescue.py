"""Rescue: some retries that are due are taken from their rows, past the broker's queue.

Two kinds: a run whose process died, which has waited its turn once and would come to the end of the
queue, behind whatever waits there; and a retry that the broker could not take, so that retries go on
while nothing can be published at all. The start's compare-and-set arbitrates between a row that is
taken so and its message, if there is one.
"""

from __future__ import annotations

import time
from datetime import datetime

from django.db.models import Q

from scheduling.broker import Broker, Delivery
from scheduling.core.lifecycle import State
from scheduling.core.outcome import Crashed
from scheduling.dispatch import message_of
from scheduling.models import SchedulerExecution

LOOK_SECONDS = 1.0


class Rescue:
    """One consumer's look for such rows, at most once a second."""

    def __init__(self, broker: Broker, queue: str) -> None:
        self._embedded, self._queue = broker.embedded, queue
        self._look_at = 0.0

    def due(self) -> bool:
        """Whether it is time to look; never on the transport that is the table itself."""
        return not self._embedded and time.monotonic() >= self._look_at

    def take(self, limit: int, now: datetime) -> list[Delivery]:
        """At most `limit` retries, as if the broker had brought them: without a tag, for nobody waits
        for an answer."""
        if limit < 1 or not self.due():
            return []
        self._look_at = time.monotonic() + LOOK_SECONDS
        rows = SchedulerExecution.objects.filter(
            Q(published_at=None) | Q(error_class=Crashed.error_class),
            state=State.RETRYING.value,
            queue=self._queue,
            wake_at__lte=now,
        )
        return [Delivery(message_of(row)) for row in rows.order_by("wake_at", "id")[:limit]]
