"""The database transport: the executions table itself is the queue.

The messages are the rows in state queued and the due rows in state retrying. Consumers lock these rows with
SKIP LOCKED. SQLite has no row locks. On SQLite, `take` runs in an immediate transaction, so only one consumer at a time
can take messages.
"""

from __future__ import annotations

import time
from collections import deque, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from django.db.models import QuerySet

from scheduling.broker.base import Counts, Delivery, ParkedSession
from scheduling.broker.handler_rows import Handlers, runs_of
from scheduling.broker.near_rows import near_rows
from scheduling.core.broker_alarm import Alarm
from scheduling.core.lifecycle import State
from scheduling.core.messages import FailedMessage, TaskMessage
from scheduling.core.origin import Wanted
from scheduling.core.outcome import Crashed
from scheduling.core.queues import turn
from scheduling.models import SchedulerExecution
from scheduling.models.execution import MESSAGE_COLUMNS, message_of
from scheduling.models.prepared import Prepared
from scheduling.processes import left_out
from scheduling.processes.database import is_away
from scheduling.processes.set_aside import read

READ_AHEAD = 32
ISOLATE_SECONDS = 60.0
"""After a row could not be read, reads use a savepoint for this many seconds."""

KEEP_SECONDS = 0.05
"""How long `take` may return rows that it has read ahead. If this time is short, two consumers rarely try to start the
same row."""


EMPTY_SECONDS = 0.2
"""After a work queue was found empty, a consumer that finds runs in its other work queues looks at it again so much
later. Otherwise three priorities would cost every consumer three times the queries."""

Due = tuple[bool, datetime, int, Delivery]
"""A row that is due: whether its last attempt did not crash, the instant of its turn, the row's id, and the delivery.

The first three values are the order of the queue. A run whose consumer died goes before the backlog, because it has
waited for its turn once already."""


_COLUMNS = ("wake_at", "error_class", "queue", *MESSAGE_COLUMNS)
_Row = cast(Any, namedtuple("_Row", _COLUMNS))  # a class without known fields, because the columns are in a variable


@lru_cache(maxsize=64)
def _first_rows(state: State, queue: str, limit: int, handlers: Handlers) -> Prepared:
    """The query for the first rows in this state, which are then locked."""
    return Prepared(lambda now: _waiting(state, queue, now, handlers)[:limit].values_list(*_COLUMNS))


def _waiting(state: State, queue: str, now: datetime, handlers: Handlers) -> QuerySet:
    rows = SchedulerExecution.objects.filter(state=state.value, queue=queue, wake_at__lte=now)
    return runs_of(rows, handlers).order_by("wake_at", "id").select_for_update(skip_locked=True)


def _due(rows: QuerySet) -> list[Due]:
    """Read rows. An exception is raised if a column holds text instead of a number, which SQLite allows."""
    return _deliveries(rows.values_list(*_COLUMNS))


def _deliveries(rows: Iterable[tuple[Any, ...]]) -> list[Due]:
    due: list[Due] = []
    for row in map(_Row._make, rows):
        if row.wake_at is None:
            raise ValueError("wake_at is no instant")  # MariaDB stores 0000-00-00 and returns NULL for it
        delivery = Delivery(message_of(row), from_row=True, queue=row.queue)
        due.append((row.error_class != Crashed.error_class, turn(row.wake_at, row.queue), row.id, delivery))
    return due


class DatabaseBroker:
    """A transport without a broker. Each row is a message; a change of the row's state answers the message."""

    embedded = True
    has_failed_queue = False

    def __init__(self) -> None:
        self._handlers: Handlers = None
        self._ahead: deque[Delivery] = deque()
        self._ahead_until = self._isolate_until = 0.0
        self._empty_until: dict[str, float] = {}
        """Maps a work queue that was found empty to the time (monotonic) at which it is looked at again."""

    def choose(self, handlers: Iterable[tuple[str, str]]) -> None:
        """Take only the runs of these handlers, which are pairs of a type and a name."""
        self._handlers = frozenset(handlers)

    def declare(self, delays_ms: Iterable[int] = (), *queues: str) -> None:
        """Do nothing: there are no queues to declare."""

    def delay(self, delay_ms: int, queue: str, drawn: bool = False) -> int:
        """Return `delay_ms` unchanged; 0 for the immediate queue, whose retries never wait."""
        return 0 if queue == SchedulerExecution.Queue.IMMEDIATE else delay_ms

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Return all ids: the committed row is the published message."""
        return {message.execution_id for message in messages if message.execution_id is not None}

    def send(self, messages: Sequence[TaskMessage], queue: str = "main") -> None:
        """Do nothing: the committed row is the published message."""

    def consume(self, prefetch: Mapping[str, int]) -> None:
        """Do nothing: `take` reads the table."""

    def ready(self, queues: Sequence[str], now: datetime) -> bool:
        """Whether a waiting row is due. Call it outside a transaction, so that the query locks nothing."""
        waiting = [State.QUEUED.value, State.RETRYING.value]
        rows = SchedulerExecution.objects.filter(state__in=waiting, queue__in=queues, wake_at__lte=now)
        return left_out.executions.without(runs_of(rows, self._handlers)).exists()

    def take(self, queues: Sequence[str], limit: int, now: datetime, wanted: Wanted | None = None) -> list[Delivery]:
        """Lock and return the rows whose turn comes first.

        If there is a backlog, `take` reads extra rows and returns them in the next calls, without locks. Another
        consumer may have started such a row in the meantime. The compare-and-set then refuses to start the row again,
        and one update is wasted. Reading ahead still saves time, because a query takes longer than ten updates.
        """
        if wanted is not None:
            return self._take_wanted(queues, limit, now, wanted)
        if time.monotonic() > self._ahead_until:
            self._ahead.clear()
        if not self._ahead:
            found = self._read(queues, limit + READ_AHEAD, now)
            if len(found) <= limit:
                return found
            self._ahead.extend(found)
            self._ahead_until = time.monotonic() + KEEP_SECONDS
        return [self._ahead.popleft() for _ in range(min(limit, len(self._ahead)))]

    def _take_wanted(self, queues: Sequence[str], limit: int, now: datetime, wanted: Wanted) -> list[Delivery]:
        """Find the wanted rows near the heads of the queues, without locks, and lock them by their primary keys."""
        rows = near_rows(queues, limit, now, wanted, self._handlers)
        if rows is None:
            return []
        found = self._rows(rows.select_for_update(skip_locked=True), now)
        taken = {pk for _crashed, _turn, pk, _delivery in found}
        self._ahead = deque(each for each in self._ahead if each.message.execution_id not in taken)
        return [delivery for _, _, _, delivery in sorted(found, key=lambda row: row[:3])]

    def _read(self, queues: Sequence[str], limit: int, now: datetime) -> list[Delivery]:
        """The deliveries at the heads of the work queues. Those that were empty lately are read if the others are."""
        at = time.monotonic()
        full = [queue for queue in queues if self._empty_until.get(queue, 0.0) <= at]
        found = [row for queue in full for row in self._head(queue, limit, now)]
        if not found:
            found = [row for queue in queues if queue not in full for row in self._head(queue, limit, now)]
        found.sort(key=lambda row: row[:3])
        return [delivery for _, _, _, delivery in found[:limit]]

    def _head(self, queue: str, limit: int, now: datetime) -> list[Due]:
        """The head of one work queue, found with one query for each state.

        A single query for both states would sort the whole backlog instead of reading the head of an index, and so
        would a query for several work queues. Only if more retries are due than `limit`, another query looks for the
        crashed ones among them.

        Raises:
            Exception: a row cannot be read, or the database has failed. After an unreadable row, all calls in the next
                `ISOLATE_SECONDS` set unreadable rows to failed. Only these calls need a savepoint.
        """
        found: list[Due] = []
        for state in (State.RETRYING, State.QUEUED):
            found.extend(self._first(state, queue, limit, now))
            if state is State.RETRYING and len(found) == limit:
                found = [row for row in found if row[0]]
                crashed = left_out.executions.without(_waiting(state, queue, now, self._handlers)).filter(
                    error_class=Crashed.error_class
                )
                found.extend(self._rows(crashed[:limit], now))
        if not found:
            self._empty_until[queue] = time.monotonic() + EMPTY_SECONDS
        return found

    def _first(self, state: State, queue: str, limit: int, now: datetime) -> list[Due]:
        if left_out.executions.keys() or time.monotonic() < self._isolate_until:
            return self._rows(left_out.executions.without(_waiting(state, queue, now, self._handlers))[:limit], now)
        first = _first_rows(state, queue, limit, self._handlers)
        return self._read_or_isolate(lambda: _deliveries(first.rows(now)))

    def _rows(self, rows: QuerySet, now: datetime) -> list[Due]:
        if time.monotonic() < self._isolate_until:
            return read(rows, now, _due)
        return self._read_or_isolate(lambda: _due(rows))

    def _read_or_isolate(self, query: Callable[[], list[Due]]) -> list[Due]:
        try:
            return query()
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

    def counts(self, queues: Iterable[str] = ()) -> Counts:
        """Count the rows in state queued and in state failed."""
        rows = SchedulerExecution.objects
        queued = rows.filter(state=State.QUEUED.value)
        ready = {queue: queued.filter(queue=queue).count() for queue in {*SchedulerExecution.Queue, *queues}}
        return Counts(ready=ready, failed=rows.filter(state=State.FAILED.value).count())

    @property
    def receiving(self) -> bool:
        """Return True: `take` reads the table."""
        return True

    @property
    def alarm(self) -> Alarm | None:
        """Return None: a database that takes no rows is away."""
        return None

    def fileno(self) -> int | None:
        """Return None: the table cannot announce new rows, so callers must poll."""
        return None

    def close(self) -> None:
        """Do nothing: this transport holds no connection and no messages."""
