"""The embedded transport: the executions table itself is the queue.

Rows in state queued, or retrying and due, are the messages. Consumers lock them with SKIP LOCKED;
on SQLite the immediate transaction around `take` admits one consumer at a time instead.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from scheduling.broker.base import Counts, Delivery, ParkedSession
from scheduling.core.lifecycle import State
from scheduling.core.messages import FailedMessage, TaskMessage
from scheduling.models import SchedulerExecution

_COLUMNS = (
    "wake_at",
    "id",
    "type",
    "target_id",
    "scheduler_id",
    "params",
    "attempt",
    "retry_base",
    "execution_key",
    "scheduled_at",
    "trigger",
)


READ_AHEAD = 32
KEEP_SECONDS = 0.05
"""How long rows that were read ahead are offered: short, so that consumers rarely try the same."""


class DatabaseBroker:
    """Nothing to install: rows are messages, and an answer is the row's next state."""

    embedded = True
    parks = False

    def __init__(self) -> None:
        self._ahead: deque[Delivery] = deque()
        self._ahead_until = 0.0

    def declare(self, delays_ms: Iterable[int] = (), queue: str = "") -> None:
        """Nothing to declare: a delay is a column."""

    def delay(self, delay_ms: int, queue: str, drawn: bool = False) -> int:
        """Any delay is kept as it is; in the immediate queue there is none."""
        return 0 if queue == SchedulerExecution.Queue.IMMEDIATE else delay_ms

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """The committed row is the published message."""
        return {message.execution_id for message in messages if message.execution_id is not None}

    def consume(self, queue: str, prefetch: int) -> None:
        """Nothing is brought: `take` looks."""

    def ready(self, queue: str, now: datetime) -> bool:
        """A look at the head of the index, outside any transaction."""
        waiting = [State.QUEUED.value, State.RETRYING.value]
        return SchedulerExecution.objects.filter(state__in=waiting, queue=queue, wake_at__lte=now).exists()

    def take(self, queue: str, limit: int, now: datetime) -> list[Delivery]:
        """Lock and return the rows whose time came first.

        Behind a backlog some more are read and kept for the next calls: they are not locked any
        more by then, and need not be, for a start is a compare-and-set. One that another consumer
        was faster with costs an update of no row, a query costs more than ten of those.
        """
        if time.monotonic() > self._ahead_until:
            self._ahead.clear()
        if not self._ahead:
            found = self._read(queue, limit + READ_AHEAD, now)
            if len(found) <= limit:
                return found
            self._ahead.extend(found)
            self._ahead_until = time.monotonic() + KEEP_SECONDS
        return [self._ahead.popleft() for _ in range(min(limit, len(self._ahead)))]

    @staticmethod
    def _read(queue: str, limit: int, now: datetime) -> list[Delivery]:
        """The head of the queue. The two states are asked one by one: a single query over both
        would sort the whole backlog instead of reading the head of an index."""
        found: list[tuple] = []
        for state in (State.RETRYING, State.QUEUED):
            rows = (
                SchedulerExecution.objects.filter(state=state.value, queue=queue, wake_at__lte=now)
                .order_by("wake_at", "id")
                .select_for_update(skip_locked=True)
                .values_list(*_COLUMNS)[:limit]
            )
            found.extend(rows)
        found.sort(key=lambda row: row[:2])
        return [Delivery(_message(row)) for row in found[:limit]]

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """The transaction that took the rows has freed them."""

    def acknowledge(self, delivery: Delivery) -> None:
        """The settled row is the answer."""

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """The row in state retrying is the waiting message."""
        return True

    def fail(self, delivery: Delivery | None, message: FailedMessage, error: str) -> bool:
        """The row in state failed is the parked message."""
        return True

    def parked(self) -> AbstractContextManager[ParkedSession]:
        """Never called: the rows of the failed inbox are all there is."""
        raise NotImplementedError

    def counts(self) -> Counts:
        """Counted from the rows."""
        rows = SchedulerExecution.objects
        ready = {
            queue: rows.filter(state=State.QUEUED.value, queue=queue).count()
            for queue in SchedulerExecution.Queue.values
        }
        return Counts(ready=ready, failed=rows.filter(state=State.FAILED.value).count())

    def fileno(self) -> int | None:
        """Rows announce nothing: ask from time to time."""
        return None

    def close(self) -> None:
        """Nothing is held."""


def _message(row: tuple) -> TaskMessage:
    _wake, id_, type_, target_id, scheduler_id, params, attempt, retry_base, key, scheduled_at, trigger = row
    return TaskMessage(
        type=type_,
        id=target_id or 0,
        scheduler_id=scheduler_id,
        params=params,
        execution_id=id_,
        attempt=attempt + 1,
        execution_key=key,
        scheduled_at=scheduled_at,
        trigger=trigger,
        retry_count=max(0, attempt - retry_base),
    )
