"""Defines the Protocol that every transport implements, and the errors that a transport raises.

The tests in `tests/contract` run against every transport and every database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from scheduling.core.broker_alarm import Alarm
from scheduling.core.deaths import Death
from scheduling.core.messages import FailedMessage, TaskMessage
from scheduling.core.origin import Wanted
from scheduling.core.queues import MAIN


class BrokerError(Exception):
    """The broker did not do what was asked."""


class BrokerUnavailable(BrokerError):
    """The broker cannot be reached now. Trying again later may help."""


class BrokerRefused(BrokerUnavailable):
    """The broker refuses our user, password, virtual host or permissions. An operator must correct the settings."""


class QueueUnavailable(BrokerUnavailable):
    """A queue cannot be used now, for example because its node is down. The broker answers, and other queues may work.

    The queue is declared again, and what waits is published again, as soon as the queue can be used.
    """


class TopologyMismatch(BrokerError):
    """A queue or the exchange already exists, and its arguments differ from the arguments that we declare."""


class FailedQueueBusy(BrokerError):
    """Another process is reading the failed queue."""


@dataclass(frozen=True)
class Delivery:
    """A message that the broker has given to this process. The process must answer the message.

    Args:
        tag: identifies the message when the transport answers the broker; None if the broker expects no answer.
        message_id: the id that the sender gave a foreign message; empty if the sender gave no id.
        earlier: how often a foreign message was retried before this project received it.
        from_row: whether the message was just made from the execution's row. If so, the message is not compared with
            the row again.
        deaths: the header `x-death` of a foreign message, and of a message that an operator moved by hand.
        queue: the work queue (`core.queues`) that the message came from.
    """

    message: TaskMessage
    tag: Any = None
    message_id: str = ""
    earlier: int = 0
    from_row: bool = False
    deaths: Sequence[Death] = ()
    queue: str = MAIN


@dataclass(frozen=True)
class Parked:
    """One message of the failed queue, with its original bytes. Only the transport uses `tag`."""

    body: bytes
    message_id: str = ""
    reason: str = ""
    """The error that was recorded when the message was parked; empty if the message names no error."""
    deaths: Sequence[Death] = ()
    """How often, and why, the broker moved the message out of a queue; the newest entry first."""
    tag: Any = None


class ParkedSession(Protocol):
    """Exclusive access to the failed queue. Messages that are not removed stay in the queue, in the same order."""

    messages: Sequence[Parked]

    def remove(self, parked: Sequence[Parked]) -> None:
        """Remove messages from the queue."""

    def identify(self, parked: Sequence[Parked]) -> list[Parked]:
        """Give each message a permanent `message_id`; returns the messages for which this succeeded, with their ids.

        Raises:
            BrokerUnavailable: the broker cannot be reached now.
        """


@dataclass(frozen=True)
class Counts:
    """How many messages the broker's queues hold."""

    ready: dict[str, int]
    """Maps our own name of a work queue (such as `main`) to the number of messages that wait in it.

    A queue that cannot be used now is missing, because the broker cannot count it."""
    failed: int | None = None
    """The number of messages in the failed queue; None if the number is unknown."""
    consumers: dict[str, int] = field(default_factory=dict)
    """Maps our own name of a work queue to the number of consumers that the broker knows; empty if it counts none."""
    problems: dict[str, str] = field(default_factory=dict)
    """Maps the broker's name of each queue that cannot be used now to the reason."""


@dataclass(frozen=True)
class BrokerNode:
    """Who answers at one address of CRON_BROKER_URL.

    Args:
        address: the address, without a password.
        product: name and version, such as `RabbitMQ 4.0.5`.
        cluster: the name of the cluster to which the node belongs; empty if it gives none.
        problem: a sentence that says why the address cannot be used; empty if it can.
    """

    address: str
    product: str = ""
    cluster: str = ""
    problem: str = ""


class Broker(Protocol):
    """What the producer, the consumer and the failed inbox need from a transport.

    A queue is always our own name of a work queue, such as `main` or `reports.high` (`core.queues`).
    """

    embedded: bool
    """Whether the executions table itself is the queue: a row committed in state queued counts as published."""

    has_failed_queue: bool
    """Whether the broker keeps failed messages in a separate queue. If it does not, do not call `failed_queue`."""

    def declare(self, delays_ms: Iterable[int] = (), *queues: str) -> None:
        """Make sure that the queues exist.

        Args:
            delays_ms: the delays of the retries that this process may publish.
            queues: the work queues of these retries; none if this process publishes no retries.

        Raises:
            TopologyMismatch, BrokerUnavailable
        """

    def delay(self, delay_ms: int, queue: str, drawn: bool = False) -> int:
        """The milliseconds that a retry will really wait. A transport may offer only certain delays.

        Args:
            delay_ms: the wanted delay.
            drawn: whether the wanted delay was drawn at random. If so, the result may be shorter than `delay_ms`.
        """

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Publish messages; returns the execution ids whose messages the broker confirmed.

        Raises:
            BrokerUnavailable: no message was confirmed. Some messages may have arrived, but publishing again is safe.
        """

    def send(self, messages: Sequence[TaskMessage], queue: str = "main") -> None:
        """Publish messages without waiting for the confirm. A message that is lost is published again by a sweep."""

    def consume(self, prefetch: Mapping[str, int]) -> None:
        """Consume these work queues, each with at most so many unanswered messages. Returns at once.

        If all numbers are 0, consuming stops, and the messages that `take` has not returned are given back. If the
        broker is unreachable, the transport tries again in the background.
        """

    def ready(self, queues: Sequence[str], now: datetime) -> bool:
        """Whether `take` may return a message. The check is cheap and takes no lock.

        The call also resets the descriptor of `fileno`: the descriptor is not readable until the next message arrives.
        """

    def take(self, queues: Sequence[str], limit: int, now: datetime, wanted: Wanted | None = None) -> list[Delivery]:
        """Take at most `limit` messages, in the order of their turns (`core.queues.LATER`).

        Does not wait if there are fewer messages.

        Args:
            wanted: if given, only messages are taken whose origin it accepts. Those that stand behind many others may
                not be found.

        Call `take` in the transaction that starts the attempts. The database transport locks the rows of the messages
        until that transaction ends.
        """

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Give back deliveries that could not be started. A later `take` returns them again."""

    def acknowledge(self, delivery: Delivery) -> None:
        """Tell the broker that the message is handled. The broker then removes the message from the queue."""

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """Publish `message` so that it arrives after a delay, and answer `delivery`.

        Args:
            delay_ms: a result of `delay`.

        Returns:
            Whether the broker confirmed `message`. If not, a later sweep publishes the retry from the row.
        """

    def dead_letter(
        self, delivery: Delivery | None, message: FailedMessage, error: str, *, foreign: bool = False
    ) -> bool:
        """Park `message` in the failed queue and answer `delivery`; returns whether the broker confirmed `message`.

        Args:
            foreign: whether no row records this message. If so, the message keeps its message id, and the broker
                delivers the message again if it has not confirmed the parked one.
        """

    def failed_queue(self) -> AbstractContextManager[ParkedSession]:
        """Read the failed queue with exclusive access. Call this method only if `has_failed_queue` is true.

        Raises:
            FailedQueueBusy, BrokerUnavailable
        """

    def beat(self, body: bytes) -> None:
        """Keep the newest beat of the deployment beside the queues, in place of the one before it. Does not wait.

        Nothing is kept by the database transport, whose queue is the database, or while the broker is unreachable.
        """

    def newest_beat(self) -> bytes | None:
        """The beat that the broker keeps; None if it keeps none. It is answered, or given up, within a second.

        Raises:
            BrokerUnavailable: the broker cannot be reached now.
        """

    def counts(self, queues: Iterable[str] = ()) -> Counts:
        """How many messages wait in the queues. A queue that cannot be used is named in `problems`.

        Args:
            queues: work queues that are counted beside those that always exist.

        Raises:
            BrokerUnavailable, TopologyMismatch: no queue can be counted.
        """

    @property
    def receiving(self) -> bool:
        """Whether messages can arrive now. False while the connection or the subscription is broken."""

    @property
    def alarm(self) -> Alarm | None:
        """Why the broker takes no messages at present, although it can be reached; None if it takes them."""

    def fileno(self) -> int | None:
        """The descriptor that becomes readable when messages arrive; None if the caller must poll."""

    def close(self) -> None:
        """Give the unanswered messages back to the broker and disconnect."""
