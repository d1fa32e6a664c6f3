"""Publishes queued rows again if the broker no longer holds their messages, for example after a queue was purged.

The broker tells how many messages of a queue are ready. If more rows are queued than messages are ready, messages are
lost. To count the rows is what costs time: 0.3 s beside half a million rows. So one sweep counts one slice of a queue,
and the next sweep goes on behind it.

The slices of a count are read at different times, while runs start and rows are published. That makes no count too
high: only rows count that were queued before the broker was asked, and these can only become fewer, because a row that
is queued anew has a later `wake_at`. A count can be too low, by the runs that start before their slice is read. Slices
are read in the order in which the broker delivers, and faster than runs start, so these are few.

A count is too high by the rows whose message a consumer had taken and not yet started when the broker was asked. Then
it suspects the oldest rows. They start before the next count ends, so it suspects other rows. It is also too high by
the rows that a host with a late clock queues in the first moments of a count. The second messages of the rows that are
suspected then are copies, and with them the broker has enough messages for the next counts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from scheduling.broker import Broker, BrokerError
from scheduling.core.lifecycle import CLAIM_GRACE, State
from scheduling.execution.publish import publish
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.models.used_queues import used_queues
from scheduling.processes import left_out

log = get_logger(__name__)

SLICE = 5_000
"""How many rows of one queue a sweep counts, from an index. A slow machine needs less than 20 ms for them."""

SUSPECTS_LIMIT = 5_000
"""The maximum number of rows of one queue that one count suspects to have lost their message."""

SUSPECT_AFTER = timedelta(seconds=6)
"""A row is suspected only if its `wake_at` is longer ago than this. If `wake_at` is more recent, the message may just
have reached a consumer."""

Place = tuple[datetime | None, int]
"""The place of a row in the order of its queue: `wake_at` and id."""


@dataclass
class QueueCount:
    """A count of the rows of one queue, over one or more sweeps.

    Args:
        ready: how many messages were ready when the count began.
        began: when the count began. Rows that are queued later do not count.
    """

    queue: str
    ready: int
    began: datetime
    rows: int = 0
    last: Place | None = None
    """The place of the last row that was counted; None at the beginning."""
    complete: bool = False

    def go_on(self) -> None:
        """Count the next slice. The count is complete at the end of the queue, or if enough rows have no message."""
        missing = SLICE
        for rows in self._behind():
            ends = rows.order_by("wake_at", "id").values_list("wake_at", "pk")[missing - 1 : missing]
            if (end := next(iter(ends), None)) is not None:
                self.rows, self.last = self.rows + missing, end
                self.complete = self.excess == SUSPECTS_LIMIT
                return
            found = rows.count()  # fewer than `missing`
            self.rows, missing = self.rows + found, missing - found
        self.complete = True

    @property
    def excess(self) -> int:
        """How many of the counted rows have no message, at most SUSPECTS_LIMIT."""
        return max(0, min(self.rows - self.ready, SUSPECTS_LIMIT))

    def _behind(self) -> list[QuerySet[SchedulerExecution]]:
        """The rows that are not counted yet, as ranges of the index (state, queue, wake_at, id)."""
        rows = _queued().filter(queue=self.queue, wake_at__lt=self.began)
        if self.last is None:
            return [rows]
        wake_at, pk = self.last
        return [rows.filter(wake_at=wake_at, pk__gt=pk), rows.filter(wake_at__gt=wake_at)]


class LostMessages:
    """Finds rows whose message may be lost. A row that two successive counts suspect is published again.

    A queue delivers its oldest message first. So if a queue holds fewer ready messages than there are queued rows, the
    messages of the oldest rows are missing. The count suspects these rows. If a message was not lost after all, the
    second message is a copy, and consumers ignore copies. A copy raises the number of ready messages, so that the next
    count suspects fewer rows, not more.
    """

    def __init__(self) -> None:
        self._counts: dict[str, QueueCount] = {}
        """The counts that go on, by queue."""
        self._suspects: dict[str, dict[int, datetime | None]] = {}
        """For each queue, the ids of the rows that its last complete count suspects, with their `published_at`."""
        self.broker_answers = True
        """Whether the broker answered when it was asked last."""

    def sweep(self, broker: Broker, now: datetime) -> int:
        """Go on with the count of each queue. Returns how many rows were published again."""
        if broker.embedded or not self._begin(broker, now):
            return 0
        again: dict[int, datetime | None] = {}
        for queue, count in list(self._counts.items()):
            count.go_on()
            if count.complete:
                del self._counts[queue]
                again |= self._suspected_again(count, now)
        return self._publish(again, broker, now) if again else 0

    def _begin(self, broker: Broker, now: datetime) -> bool:
        """Begin a count of each queue of which none goes on. Returns whether there is something to count."""
        used = used_queues([State.QUEUED])
        new = [queue for queue in used if queue not in self._counts]
        self._forget([queue for queue in self._suspects if queue not in used])
        if not _queued().filter(queue__in=new, wake_at__lt=now - SUSPECT_AFTER).exists():
            self._forget(new)
            return bool(self._counts)
        try:
            ready = broker.counts(used).ready
        except BrokerError as error:
            log.debug("The broker cannot be asked what it holds: %s", error)
            self._forget({*self._counts, *self._suspects})
            self.broker_answers = False
            return False
        self.broker_answers = True
        # A queue that cannot be used now has no number, so nothing is known about its messages.
        self._forget([queue for queue in new if queue not in ready])
        self._counts |= {queue: QueueCount(queue, ready[queue], now) for queue in new if queue in ready}
        return True

    def _forget(self, queues: Collection[str]) -> None:
        for queue in queues:
            self._counts.pop(queue, None)
            self._suspects.pop(queue, None)

    def _suspected_again(self, count: QueueCount, now: datetime) -> dict[int, datetime | None]:
        """The rows that this complete count and the one before it suspect."""
        before = self._suspects.pop(count.queue, {})
        if not count.excess:
            return {}
        old = _queued().filter(queue=count.queue, wake_at__lt=min(count.began, now - SUSPECT_AFTER))
        oldest = old.order_by("wake_at", "id").values_list("pk", "published_at")[: count.excess]
        suspects = dict(oldest)
        again = {pk: seen for pk, seen in suspects.items() if pk in before and before[pk] == seen}
        self._suspects[count.queue] = {pk: seen for pk, seen in suspects.items() if pk not in again}
        return again

    def _publish(self, suspects: dict[int, datetime | None], broker: Broker, now: datetime) -> int:
        with transaction.atomic():
            rows = SchedulerExecution.objects.filter(pk__in=list(suspects), state=State.QUEUED.value)
            # A row with a new `published_at` is left out, because another producer has already published it again.
            lost = [row for row in rows.select_for_update(skip_locked=True) if suspects[row.pk] == row.published_at]
            taken = SchedulerExecution.objects.filter(pk__in=[row.pk for row in lost])
            taken.move([State.QUEUED], State.CLAIMED, wake_at=now + CLAIM_GRACE, published_at=None)
        if lost:
            log.warning("The broker no longer holds %s queued messages; they are published again", len(lost))
        return publish(lost, broker)


def _queued() -> QuerySet[SchedulerExecution]:
    return left_out.executions.without(SchedulerExecution.objects.filter(state=State.QUEUED.value))
