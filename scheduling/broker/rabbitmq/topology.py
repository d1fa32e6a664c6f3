"""Defines the names and arguments of the exchange and the queues.

Every argument here was tested under injected crashes on RabbitMQ 3.10, 4.0 and 4.3. The arguments of an existing queue
cannot be changed: the broker refuses the declaration (406). A queue with other arguments needs another name, or the old
queue must be deleted first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from scheduling.broker.rabbitmq.queue import Queue
from scheduling.core.retry import MAX_RETRIES

WORK = {"main": "", "standalone": "_standalone", "immediate": "_immediate"}
"""Maps our own name of each work queue that always exists to the end of the broker's name.

The name of any other work queue follows a dot, as in `cron_scheduler.reports.high`. So it differs from these names,
whatever the queue is called."""

_STEM = {"classic": "cron_scheduler", "quorum": "cron_scheduler_quorum"}
_EXCHANGE = {"classic": "cron_dlx", "quorum": "cron_dlx_quorum"}
"""The names of the two types of topology differ, because the type of an existing queue cannot be changed.

So the type can be changed while old processes still run. Rows whose messages are in queues of the former type are
published again by the producers' sweeps."""

WORK_DELIVERY_LIMIT = 100
"""The maximum number of times that a quorum main or standalone queue delivers one message.

After a start, the row counts the attempts, and the message is only a copy. So this limit is for a message that ends
every consumer before the start. It is high, because the end of a consumer or of a connection counts as a delivery of
every message that waited there for a free slot."""

DELIVERY_LIMIT = MAX_RETRIES[1] + 6
"""The maximum number of times that the immediate queue delivers one message.

The retry policy allows fewer attempts, so a message usually does not reach this limit. The limit is needed if a message
crashes every consumer before the consumer can record an attempt. A crash counts as a delivery of every message that the
consumer held, so the limit must not be too low."""

BEAT_DELIVERY_LIMIT = 1_000_000
"""The maximum number of times that a quorum beat queue delivers its message: each process reads it once, and gives it
back. RabbitMQ 4 would drop it after 20 times. Every version takes a positive limit, so an upgrade changes nothing."""

_CLASSIC = {"x-queue-type": "classic"}
"""The argument that makes a queue classic. Every declaration of a classic queue contains it.

Usually a queue without this argument is classic too, so other clients may leave the argument out. The argument is
needed in a virtual host whose default type is quorum. There, a queue without the argument would be a quorum queue. A
quorum queue with the main queue's dead-letter key would lose messages."""

_SAFELY_PARKED = {
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",  # at-least-once requires this
}
"""The arguments with which a quorum queue keeps a message that it passes on until the next queue has confirmed it."""


@dataclass(frozen=True)
class Topology:
    """The exchange and the queues that are declared.

    Args:
        prefix: the text with which every name begins. With different prefixes, several projects or tests can share a
            virtual host.
        retry_delay_ms: how long a nacked message waits (CRON_RETRY_DELAY_MS).
        queue_type: `classic` or `quorum` (CRON_QUEUE_TYPE), the type of the main, standalone and failed queue.
    """

    prefix: str = ""
    retry_delay_ms: int = 30_000
    queue_type: str = "classic"

    @property
    def quorum(self) -> bool:
        """Whether the work queues and the failed queue are quorum queues.

        A nack then parks the message. With a dead-letter key that leads back to the work queue, a message that reaches
        the delivery limit would go in a cycle, and RabbitMQ would drop it. So no queue holds nacked messages, and a
        retry that could not be published is acknowledged: consumers start it from its row.
        """
        return self.queue_type == "quorum"

    @property
    def exchange(self) -> str:
        """The name of the dead-letter exchange, which is direct and durable."""
        return self.prefix + _EXCHANGE[self.queue_type]

    @property
    def failed(self) -> str:
        """The failed queue's name."""
        return f"{self.prefix}{_STEM[self.queue_type]}_failed"

    @property
    def beat(self) -> Queue:
        """The queue that holds the newest beat, and nothing else. A new beat drops the one before it. See `beats`."""
        arguments: dict[str, Any] = {"x-queue-type": self.queue_type, "x-max-length": 1}
        if self.quorum:
            arguments["x-delivery-limit"] = BEAT_DELIVERY_LIMIT
        return Queue(f"{self.prefix}{_STEM[self.queue_type]}_beat", arguments)

    def work(self, queue: str) -> str:
        """The broker's name of a work queue, such as `main`, `main.high` or `reports`."""
        return self.prefix + _STEM[self.queue_type] + WORK.get(queue, f".{queue}")

    def base(self) -> tuple[Queue, ...]:
        """The queues that do not depend on any delay."""
        if self.quorum:
            return (
                Queue(self.work("main"), self._limited(WORK_DELIVERY_LIMIT) | _SAFELY_PARKED),
                # The queue is read without acknowledging its messages, so each reading is a delivery.
                Queue(self.failed, {"x-queue-type": "quorum"}, "failed", unlimited=True),
                Queue(self.work("standalone"), self._limited(WORK_DELIVERY_LIMIT) | _SAFELY_PARKED),
                Queue(self.work("immediate"), self._limited(DELIVERY_LIMIT)),
            )
        return (
            Queue(self.work("main"), self._returning("retry")),
            self._nacked("main"),
            Queue(self.failed, dict(_CLASSIC), "failed"),
            # The standalone queue has its own wait queues, see `rung_key`.
            Queue(self.work("standalone"), self._returning(_key("standalone"))),
            self._nacked("standalone"),
            Queue(self.work("immediate"), self._limited(DELIVERY_LIMIT)),
        )

    def named(self, queue: str) -> tuple[Queue, ...]:
        """A work queue that not every deployment has, with the queue of its nacked messages."""
        if self.quorum:
            return (Queue(self.work(queue), self._limited(WORK_DELIVERY_LIMIT) | _SAFELY_PARKED),)
        return (Queue(self.work(queue), self._returning(_key(queue))), self._nacked(queue))

    def rungs(self, queue: str, seconds: Iterable[int]) -> tuple[Queue, ...]:
        """The wait queues of `queue` for these delays, in ascending order; empty for the immediate queue."""
        if queue == "immediate":
            return ()
        return tuple(self._rung(queue, delay) for delay in sorted(set(seconds)))

    def rung_key(self, queue: str, seconds: int) -> str:
        """The routing key of one wait queue. This wait queue sends each message to `queue` after the delay.

        The standalone queue has its own ladder, which works exactly like the ladder of the main queue. Two ways to
        share one ladder were rejected:

        - Each wait queue sends a message back with the message's own routing key. Each wait queue then needs an
          exchange.
        - All messages come back to the main queue, and its consumers forward the standalone messages. Standalone
          retries then wait if no consumer of the main queue runs.

        Any other work queue has wait queues for those delays only that its retries need.

        The second ladder costs 34 idle queues, which take about 2 MB. Up to RabbitMQ 3.13, each queue also reserves
        three file handles, and a broker started with `ulimit -n 1024` has 927 handles. To save handles, only the
        consumers of a work queue declare its ladder. No other process publishes to this ladder.
        """
        return f"{_key(queue)}.{seconds}"

    def _limited(self, limit: int) -> dict[str, Any]:
        return {
            "x-queue-type": "quorum",  # only quorum queues count deliveries
            "x-delivery-limit": limit,
            "x-dead-letter-exchange": self.exchange,
            # With the key `retry`, messages would go in a cycle, and the broker would drop them.
            "x-dead-letter-routing-key": "failed",
        }

    def _returning(self, key: str) -> dict[str, Any]:
        return {
            **_CLASSIC,
            "x-message-deduplication": True,  # a broker without the plugin accepts and ignores this
            "x-dead-letter-exchange": self.exchange,
            "x-dead-letter-routing-key": key,
        }

    def _nacked(self, queue: str) -> Queue:
        arguments = {
            **_CLASSIC,
            "x-message-ttl": self.retry_delay_ms,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.work(queue),
        }
        return Queue(self._retry(queue), arguments, _key(queue))

    def _retry(self, queue: str) -> str:
        # After the name of a queue that people choose comes a dot: a queue may be called `reports_retry`.
        return self.work(queue) + ("_retry" if queue in WORK else ".retry")

    def _rung(self, queue: str, seconds: int) -> Queue:
        # The name contains the delay, so a changed setting never conflicts with an existing queue.
        # The wait queue keeps a message until the work queue has confirmed it.
        arguments = {
            "x-queue-type": "quorum",
            "x-message-ttl": seconds * 1000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.work(queue),
            **_SAFELY_PARKED,
        }
        return Queue(f"{self._retry(queue)}.{seconds}", arguments, self.rung_key(queue, seconds))

    def former(self) -> Topology:
        """The queues of the other type. Messages may still be in them after CRON_QUEUE_TYPE was changed."""
        return replace(self, queue_type="classic" if self.quorum else "quorum")

    def is_nacked(self, name: str) -> bool:
        """Whether `name` is a queue in which nacked messages wait: the queue of this kind of `main` or of another."""
        nacked = {self._retry("main"), self._retry("standalone")}
        return not self.quorum and (name in nacked or (name.startswith(self.work("main")) and name.endswith(".retry")))


def _key(queue: str) -> str:
    return "retry" if queue == "main" else f"{queue}.retry"
