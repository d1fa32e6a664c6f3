"""The small Protocol that every transport keeps, and its errors.

One contract suite (tests/contract) passes unchanged on every adapter and database.
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
    """The broker cannot be reached now; trying again later may help."""


class BrokerRefused(BrokerUnavailable):
    """The broker is there and refuses us: user, password, virtual host or permissions. A person must look."""


class TopologyMismatch(BrokerError):
    """A queue exists with other arguments than ours."""


class ParkedBusy(BrokerError):
    """Another process reads the failed queue at this moment."""


@dataclass(frozen=True)
class Delivery:
    """A message that was handed out and waits for an answer.

    Args:
        tag: the adapter's own; None when no message lies behind it, and no answer is expected.
        message_id: the sender's identity of a foreign message, empty when it gave none.
        earlier: how often a foreign message was retried before it came here.
    """

    message: TaskMessage
    tag: Any = None
    message_id: str = ""
    earlier: int = 0


@dataclass(frozen=True)
class Parked:
    """One message of the failed queue as it lies there; `tag` is the adapter's own."""

    body: bytes
    message_id: str = ""
    reason: str = ""
    """Why the adapter could not read it, for a body that is no task."""
    deaths: dict[tuple[str, str], int] = field(default_factory=dict)
    """How often the broker moved it by itself, by queue and reason."""
    tag: Any = None


class ParkedSession(Protocol):
    """The failed queue, held by one process; what is not removed stays, in its order."""

    messages: Sequence[Parked]

    def remove(self, parked: Sequence[Parked]) -> None:
        """Take messages out of the queue."""
        ...

    def identify(self, parked: Sequence[Parked]) -> list[Parked]:
        """Give messages without a `message_id` one, for good; returns those that have one now.

        Raises:
            BrokerUnavailable
        """
        ...


@dataclass(frozen=True)
class Counts:
    """What the broker holds, by queue name of ours; None where it cannot say."""

    ready: dict[str, int]
    failed: int | None = None


class Broker(Protocol):
    """What dispatch, the failed inbox and the consumer need of a transport."""

    embedded: bool
    """The executions table itself is the queue: a row that is committed as queued is published."""

    parks: bool
    """Failed messages stay in a queue of the broker beside their rows: `parked` can be called."""

    def declare(self, delays_ms: Iterable[int] = (), queue: str = "") -> None:
        """Make sure of the queues.

        Args:
            queue: the one whose retries this process will send to wait, if any.
            delays_ms: delays that those retries are known to need.

        Raises:
            TopologyMismatch, BrokerUnavailable
        """

    def delay(self, delay_ms: int, queue: str, drawn: bool = False) -> int:
        """The milliseconds that `retry` will keep for a wanted delay, as near as the transport can.

        Args:
            drawn: the delay was drawn at random, and may come out shorter; else it is never shortened.
        """
        ...

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Hand over messages; returns the execution ids that the broker confirmed.

        Raises:
            BrokerUnavailable: nothing is known of those not returned; publishing again is safe.
        """
        ...

    def consume(self, queue: str, prefetch: int) -> None:
        """Have messages brought, at most `prefetch` of them unanswered; 0: no more, and what was not
        taken goes back. Returns at once; a broker that is away is waited for in the background."""

    def ready(self, queue: str, now: datetime) -> bool:
        """Whether `take` may return something: cheap, without a lock. Makes `fileno` unreadable."""
        ...

    def take(self, queue: str, limit: int, now: datetime) -> list[Delivery]:
        """At most `limit` messages, at once, maybe none. Call it in the transaction that starts them:
        the database transport keeps their rows locked until it ends."""
        ...

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """These were taken and could not be started: `take` will return them again."""

    def acknowledge(self, delivery: Delivery) -> None:
        """The message is done with."""

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """Let `message` arrive after a delay and be done with `delivery`.

        Args:
            delay_ms: as `delay` gave it.

        Returns:
            Whether the broker confirmed it. If not, the row alone knows of the retry, and sweeps see to it.
        """
        ...

    def fail(self, delivery: Delivery | None, message: FailedMessage, error: str) -> bool:
        """Park `message` in the failed queue and be done with `delivery`; whether it was confirmed."""
        ...

    def parked(self) -> AbstractContextManager[ParkedSession]:
        """Hold the failed queue and look at all of it; only where `parks` says so.

        Raises:
            ParkedBusy, BrokerUnavailable
        """
        ...

    def counts(self) -> Counts:
        """How many messages wait.

        Raises:
            BrokerUnavailable, TopologyMismatch
        """
        ...

    def fileno(self) -> int | None:
        """A descriptor that turns readable when messages arrive; None: ask from time to time."""
        ...

    def close(self) -> None:
        """Give back what was taken and not answered, and disconnect."""
