"""Defines the Protocol that every transport implements, and the errors that a transport raises.

The same tests (tests/contract) run on every adapter and every database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from scheduling.core.messages import FailedMessage, TaskMessage


class BrokerError(Exception):
    """The broker did not do what was asked."""


class BrokerUnavailable(BrokerError):
    """The broker cannot be reached now. Trying again later may help."""


class BrokerRefused(BrokerUnavailable):
    """The broker answers and refuses our user, password, virtual host or permissions. Only an operator can fix this."""


class TopologyMismatch(BrokerError):
    """A queue or the exchange already exists, and its arguments differ from the arguments that we declare."""


class FailedQueueBusy(BrokerError):
    """Another process is reading the failed queue."""


@dataclass(frozen=True)
class Delivery:
    """A message that the broker has handed to this process and that this process must answer.

    Args:
        tag: what the adapter needs to answer the message; None if no message waits for an answer.
        message_id: the id that the sender gave a foreign message; empty if the sender gave no id.
        earlier: how often a foreign message was retried before this project received it.
        from_row: whether the message was just made from the execution's row. Such a message is not compared with the
            row again.
    """

    message: TaskMessage
    tag: Any = None
    message_id: str = ""
    earlier: int = 0
    from_row: bool = False


@dataclass(frozen=True)
class Parked:
    """One message of the failed queue, unchanged. Only the adapter uses `tag`."""

    body: bytes
    message_id: str = ""
    reason: str = ""
    """Why the adapter could not read the body as a task; empty if the adapter could read the body."""
    deaths: dict[tuple[str, str], int] = field(default_factory=dict)
    """How often the broker itself moved the message to another queue, by the queue that it left and the reason."""
    tag: Any = None


class ParkedSession(Protocol):
    """The failed queue while one process holds the queue. Messages that are not removed stay there, in their order."""

    messages: Sequence[Parked]

    def remove(self, parked: Sequence[Parked]) -> None:
        """Take messages out of the queue."""

    def identify(self, parked: Sequence[Parked]) -> list[Parked]:
        """Give messages a lasting `message_id`; returns the messages that received a `message_id`.

        Raises:
            BrokerUnavailable: the broker cannot be reached now.
        """


@dataclass(frozen=True)
class Counts:
    """The numbers of messages in the broker's queues, by our own queue names. None stands for an unknown number."""

    ready: dict[str, int]
    failed: int | None = None


class Broker(Protocol):
    """What the producer, the consumer and the failed inbox need from a transport."""

    embedded: bool
    """Whether the executions table itself is the queue: a row committed in state queued counts as published."""

    has_failed_queue: bool
    """Whether the broker keeps failed messages in a queue of its own; only then may `failed_queue` be called."""

    def declare(self, delays_ms: Iterable[int] = (), queue: str = "") -> None:
        """Make sure that the queues exist.

        Args:
            queue: the work queue whose retries this process will send to wait queues; empty if it sends no retries.
            delays_ms: delays that these retries will need.

        Raises:
            TopologyMismatch, BrokerUnavailable
        """

    def delay(self, delay_ms: int, queue: str, drawn: bool = False) -> int:
        """The milliseconds that a retry will really wait: the delay nearest to `delay_ms` that the transport offers.

        Args:
            drawn: the delay was drawn at random, so the result may be shorter. Any other delay is never shortened.
        """

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Hand messages to the broker; returns the execution ids that the broker confirmed.

        Raises:
            BrokerUnavailable: no message was confirmed. Some messages may have arrived, but publishing again is safe.
        """

    def consume(self, queue: str, prefetch: int) -> None:
        """Start consuming, with at most `prefetch` unanswered messages. Returns at once.

        A `prefetch` of 0 stops consuming and gives back the messages that were not taken. If the broker is
        unreachable, the transport tries again in the background.
        """

    def ready(self, queue: str, now: datetime) -> bool:
        """Whether `take` may return a message. The check is cheap and takes no lock.

        The call also makes the descriptor of `fileno` unreadable.
        """

    def take(self, queue: str, limit: int, now: datetime) -> list[Delivery]:
        """Take at most `limit` messages, or none, without waiting.

        Call `take` in the transaction that starts the attempts, because the database transport locks the rows of the
        messages until that transaction ends.
        """

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Give back deliveries that were taken and could not be started. `take` returns them again."""

    def acknowledge(self, delivery: Delivery) -> None:
        """Tell the broker that the message is handled. The message leaves the queue."""

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """Publish `message` so that it arrives after a delay, and answer `delivery`.

        Args:
            delay_ms: a result of `delay`.

        Returns:
            Whether the broker confirmed `message`. If not, only the row holds the retry, and a sweep publishes it.
        """

    def dead_letter(self, delivery: Delivery | None, message: FailedMessage, error: str) -> bool:
        """Park `message` in the failed queue and answer `delivery`; returns whether the broker confirmed `message`."""

    def failed_queue(self) -> AbstractContextManager[ParkedSession]:
        """Hold the failed queue exclusively and read its messages. Call it only if `has_failed_queue` is true.

        Raises:
            FailedQueueBusy, BrokerUnavailable
        """

    def counts(self) -> Counts:
        """How many messages wait in the queues.

        Raises:
            BrokerUnavailable, TopologyMismatch
        """

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when messages arrive; None if the caller must poll."""

    def close(self) -> None:
        """Give back the messages that were taken and not answered, then disconnect."""
