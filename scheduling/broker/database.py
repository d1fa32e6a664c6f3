"""The embedded transport: the executions table itself is the queue.

Rows in state queued, or retrying and due, are the messages. Consumers lock them with SKIP LOCKED;
on SQLite the immediate transaction around `take` admits one consumer at a time instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from scheduling.broker.base import Counts, Delivery
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


class DatabaseBroker:
    """Nothing to install: rows are messages, and an answer is the row's next state."""

    embedded = True

    def declare(self, delays_ms: Iterable[int]) -> None:
        """Nothing to declare: a delay is a column."""

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """The committed row is the published message."""
        return {message.execution_id for message in messages if message.execution_id is not None}

    def ready(self, queue: str, now: datetime) -> bool:
        """A look at the head of the index, outside any transaction."""
        waiting = [State.QUEUED.value, State.RETRYING.value]
        return SchedulerExecution.objects.filter(state__in=waiting, queue=queue, wake_at__lte=now).exists()

    def take(self, queue: str, limit: int, now: datetime) -> list[Delivery]:
        """Lock and return the rows whose time came first.

        The two states are asked one by one: a single query over both would sort the whole
        backlog instead of reading the head of an index.
        """
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

    def acknowledge(self, delivery: Delivery) -> None:
        """The settled row is the answer."""

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """The row in state retrying is the waiting message."""
        return True

    def fail(self, delivery: Delivery | None, message: FailedMessage, error: str) -> bool:
        """The row in state failed is the parked message."""
        return True

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
