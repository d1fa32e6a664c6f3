"""The database transport: the executions table itself is the queue.

The messages are the rows in state queued and the due rows in state retrying. Consumers lock these rows with
SKIP LOCKED. SQLite has no row locks. On SQLite, `take` runs in an immediate transaction, so only one consumer at a time
can take messages.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from django.db.models import QuerySet

from scheduling.broker.base import Counts, Delivery, ParkedSession
from scheduling.core.lifecycle import State
from scheduling.core.messages import FailedMessage, TaskMessage
from scheduling.core.outcome import Crashed
from scheduling.models import SchedulerExecution
from scheduling.models.execution import MESSAGE_COLUMNS, message_of
from scheduling.processes import left_out
from scheduling.processes.database import is_away
from scheduling.processes.set_aside import read

READ_AHEAD = 32
ISOLATE_SECONDS = 60.0
"""After a row could not be read, reads use a savepoint for this many seconds."""

KEEP_SECONDS = 0.05
"""How long `take` may return rows that it has read ahead. If this time is short, two consumers rarely try to start the
same row."""


Due = tuple[bool, datetime, int, TaskMessage]
"""A row that is due: whether its last attempt did not crash, `wake_at`, the row's id, and the message.

The first three values are the order of the queue. A run whose consumer died goes before the backlog, because it has
waited for its turn once already."""


def _due(rows: QuerySet) -> list[Due]:
    """Read rows. An exception is raised if a column holds text instead of a number, which SQLite allows."""
    found = rows.values_list("wake_at", "error_class", *MESSAGE_COLUMNS, named=True)
    due = [(row.error_class != Crashed.error_class, row.wake_at, row.id, message_of(row)) for row in found]
    if any(wake_at is None for _, wake_at, _, _ in due):
        raise ValueError("wake_at is no instant")  # MariaDB stores 0000-00-00 and returns NULL for it
    return due


class DatabaseBroker:
    """A transport without a broker. Each row is a message; a change of the row's state answers the message."""

    embedded = True
    has_failed_queue = False

    def __init__(self) -> None:
        self._ahead: deque[Delivery] = deque()
        self._ahead_until = self._isolate_until = 0.0

    def declare(self, delays_ms: Iterable[int] = (), queue: str = "") -> None:
        """Do nothing: there are no queues to declare."""

    def delay(self, delay_ms: int, queue: str, drawn: bool = False) -> int:
        """Return `delay_ms` unchanged; 0 for the immediate queue, whose retries never wait."""
        return 0 if queue == SchedulerExecution.Queue.IMMEDIATE else delay_ms

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Return all ids: the committed row is the published message."""
        return {message.execution_id for message in messages if message.execution_id is not None}

    def consume(self, queue: str, prefetch: int) -> None:
        """Do nothing: `take` reads the table."""

    def ready(self, queue: str, now: datetime) -> bool:
        """Whether a waiting row is due. Call it outside a transaction, so that the query locks nothing."""
        waiting = [State.QUEUED.value, State.RETRYING.value]
        rows = SchedulerExecution.objects.filter(state__in=waiting, queue=queue, wake_at__lte=now)
        return left_out.executions.without(rows).exists()

    def take(self, queue: str, limit: int, now: datetime) -> list[Delivery]:
        """Lock and return the rows that have been due longest.

        If there is a backlog, `take` reads extra rows and returns them in the next calls, without locks. Another
        consumer may have started such a row in the meantime. The compare-and-set then refuses to start the row again,
        and one update is wasted. Reading ahead still saves time, because a query takes longer than ten updates.
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

    def _read(self, queue: str, limit: int, now: datetime) -> list[Delivery]:
        """The deliveries at the head of the queue, found with one query for each state.

        A single query for both states would sort the whole backlog instead of reading the head of an index. Only if
        more retries are due than `limit`, another query looks for the crashed ones among them.

        Raises:
            Exception: a row cannot be read, or the database has failed. After an unreadable row, all calls in the next
                `ISOLATE_SECONDS` set unreadable rows to failed. Only these calls need a savepoint.
        """
        found: list[Due] = []
        for state in (State.RETRYING, State.QUEUED):
            rows = SchedulerExecution.objects.filter(state=state.value, queue=queue, wake_at__lte=now)
            usable = left_out.executions.without(rows)
            locked = usable.order_by("wake_at", "id").select_for_update(skip_locked=True)
            found.extend(self._rows(locked[:limit], now))
            if state is State.RETRYING and len(found) == limit:
                found = [row for row in found if row[0]]
                found.extend(self._rows(locked.filter(error_class=Crashed.error_class)[:limit], now))
        found.sort(key=lambda row: row[:3])
        return [Delivery(message, from_row=True) for _, _, _, message in found[:limit]]

    def _rows(self, rows: QuerySet, now: datetime) -> list[Due]:
        if time.monotonic() < self._isolate_until:
            return read(rows, now, _due)
        try:
            return _due(rows)
        except Exception as error:
            if not is_away(error):
                self._isolate_until = time.monotonic() + ISOLATE_SECONDS
            raise

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Do nothing: the end of the transaction has unlocked the rows."""

    def acknowledge(self, delivery: Delivery) -> None:
        """Do nothing: the new state of the row is the answer."""

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """Return True: the row in state retrying is the waiting message."""
        return True

    def dead_letter(
        self, delivery: Delivery | None, message: FailedMessage, error: str, *, foreign: bool = False
    ) -> bool:
        """Return True: the row in state failed is the parked message."""
        return True

    def failed_queue(self) -> AbstractContextManager[ParkedSession]:
        """Raise NotImplementedError: this transport has no failed queue, only the rows of the failed inbox."""
        raise NotImplementedError

    def beat(self, body: bytes) -> None:
        """Do nothing: the queue is restored together with the rows."""

    def newest_beat(self) -> bytes | None:
        """Return None: this transport keeps nothing outside of the database."""
        return None

    def counts(self) -> Counts:
        """Count the rows in state queued and in state failed."""
        rows = SchedulerExecution.objects
        queued = rows.filter(state=State.QUEUED.value)
        ready = {queue: queued.filter(queue=queue).count() for queue in SchedulerExecution.Queue.values}
        return Counts(ready=ready, failed=rows.filter(state=State.FAILED.value).count())

    @property
    def receiving(self) -> bool:
        """Return True: `take` reads the table."""
        return True

    def fileno(self) -> int | None:
        """Return None: the table cannot announce new rows, so callers must poll."""
        return None

    def close(self) -> None:
        """Do nothing: this transport holds no connection and no messages."""
