"""Rescue: retries that are due and have no message are taken from their rows, past the broker.

A run whose consumer died, and a retry that the broker could not take, would otherwise be published to
the end of the queue, behind whatever waits there. They have waited long enough; and so retries go on
while nothing can be published at all. The start's compare-and-set arbitrates, as it does for messages.
"""

from __future__ import annotations

import time
from datetime import datetime

from scheduling.broker import Broker, Delivery
from scheduling.core.lifecycle import State
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
            state=State.RETRYING.value, queue=self._queue, wake_at__lte=now, published_at=None
        )
        return [Delivery(message_of(row)) for row in rows.order_by("wake_at", "id")[:limit]]
