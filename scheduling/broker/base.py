"""The small Protocol that every transport keeps, and its errors.

One contract suite (tests/contract) passes unchanged on every adapter and database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from scheduling.core.messages import FailedMessage, TaskMessage


class BrokerError(Exception):
    """The broker did not do what was asked."""


class BrokerUnavailable(BrokerError):
    """The broker cannot be reached now; trying again later may help."""


class TopologyMismatch(BrokerError):
    """A queue exists with other arguments than ours."""


@dataclass(frozen=True)
class Delivery:
    """A message that was handed out and waits for an answer; `tag` is the adapter's own."""

    message: TaskMessage
    tag: Any = None


@dataclass(frozen=True)
class Counts:
    """What the broker holds, by queue name of ours; None where it cannot say."""

    ready: dict[str, int]
    failed: int | None = None


class Broker(Protocol):
    """What dispatch, the failed inbox and the consumer need of a transport."""

    embedded: bool
    """The executions table itself is the queue: a row that is committed as queued is published."""

    def declare(self, delays_ms: Iterable[int]) -> None:
        """Make sure of queues, and of wait queues for these delays.

        Raises:
            TopologyMismatch, BrokerUnavailable
        """

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Hand over messages; returns the execution ids that the broker confirmed.

        Raises:
            BrokerUnavailable: nothing is known of those not returned; publishing again is safe.
        """
        ...

    def ready(self, queue: str, now: datetime) -> bool:
        """Whether `take` may return something: cheap, without a lock."""
        ...

    def take(self, queue: str, limit: int, now: datetime) -> list[Delivery]:
        """At most `limit` messages, at once, maybe none. Call it in the transaction that starts them:
        the database transport keeps their rows locked until it ends."""
        ...

    def acknowledge(self, delivery: Delivery) -> None:
        """The message is done with."""

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """Let `message` arrive after a delay, then acknowledge `delivery`; whether it was confirmed."""
        ...

    def fail(self, delivery: Delivery | None, message: FailedMessage, error: str) -> bool:
        """Park `message` in the failed queue, then acknowledge `delivery`; whether it was confirmed."""
        ...

    def counts(self) -> Counts:
        """How many messages wait.

        Raises:
            BrokerUnavailable
        """
        ...

    def fileno(self) -> int | None:
        """A descriptor that is readable when `take` would return something; None: ask from time to time."""
        ...

    def close(self) -> None:
        """Give back what was taken and not answered, and disconnect."""
