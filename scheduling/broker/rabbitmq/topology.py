"""Defines the names and arguments of the exchange and the queues, and chooses the wait queue for a delay.

Every argument here was tested under injected crashes on RabbitMQ 3.10, 4.0 and 4.3. The arguments of an existing queue
cannot be changed: the broker refuses the declaration (406). A queue with other arguments needs another name, or the old
queue must be deleted first.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from scheduling.core.deaths import REJECTED, read_deaths
from scheduling.core.retry import MAX_RETRIES

LADDER = (
    1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 150, 180, 240, 300, 360, 450, 600,
    750, 900, 1200, 1500, 1800, 2400, 2700, 3600,
)  # fmt: skip
"""The delays, in seconds, of the wait queues that always exist. From 3 s on, each delay is at most a third longer than
the previous delay.

The wait queues of one work queue are called its ladder; one wait queue is a rung."""

WORK = {"main": "cron_scheduler", "standalone": "cron_scheduler_standalone", "immediate": "cron_scheduler_immediate"}
"""Maps our own name of each work queue to the broker's name, without the prefix."""

DELIVERY_LIMIT = MAX_RETRIES[1] + 6
"""The maximum number of times that the immediate queue delivers one message.

The retry policy allows fewer attempts, so a message usually does not reach this limit. The limit is needed if a message
crashes every consumer before the consumer can record an attempt. A crash counts as a delivery of every message that the
consumer held, so the limit must not be too low."""

_CLASSIC = {"x-queue-type": "classic"}
"""The argument that makes a queue classic. Every declaration of a classic queue contains it.

Usually a queue without this argument is classic too, so other clients may leave the argument out. The argument is
needed in a virtual host whose default type is quorum. There, a queue without the argument would be a quorum queue. A
quorum queue with the main queue's dead-letter key would lose messages."""


@dataclass(frozen=True)
class Queue:
    """One durable queue. `binding` is its routing key on the dead-letter exchange; None if the queue is not bound."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    binding: str | None = None


@dataclass(frozen=True)
class Topology:
    """The exchange and the queues that are declared.

    Args:
        prefix: the text with which every name begins. With different prefixes, several projects or tests can share a
            virtual host.
        retry_delay_ms: how long a nacked message waits (CRON_RETRY_DELAY_MS).
    """

    prefix: str = ""
    retry_delay_ms: int = 30_000

    @property
    def exchange(self) -> str:
        """The name of the dead-letter exchange, which is direct and durable."""
        return f"{self.prefix}cron_dlx"

    @property
    def failed(self) -> str:
        """The failed queue's name."""
        return f"{self.prefix}cron_scheduler_failed"

    def work(self, queue: str) -> str:
        """The broker's name of `main`, `standalone` or `immediate`."""
        return self.prefix + WORK[queue]

    def base(self) -> tuple[Queue, ...]:
        """The queues that do not depend on any delay."""
        return (
            Queue(self.work("main"), self._returning("retry")),
            self._nacked("main"),
            Queue(self.failed, dict(_CLASSIC), "failed"),
            # The standalone queue has its own wait queues, see `rung_key`.
            Queue(self.work("standalone"), self._returning(_key("standalone"))),
            self._nacked("standalone"),
            Queue(
                self.work("immediate"),
                {
                    "x-queue-type": "quorum",  # only quorum queues count deliveries
                    "x-delivery-limit": DELIVERY_LIMIT,
                    "x-dead-letter-exchange": self.exchange,
                    # With the key `retry`, messages would go in a cycle, and the broker would drop them.
                    "x-dead-letter-routing-key": "failed",
                },
            ),
        )

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

        The second ladder costs 34 idle queues, which take about 2 MB. Up to RabbitMQ 3.13, each queue also reserves
        three file handles, and a broker started with `ulimit -n 1024` has 927 handles. To save handles, only the
        consumers of a work queue declare its ladder. No other process publishes to this ladder.
        """
        return f"{_key(queue)}.{seconds}"

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
        return Queue(f"{self.work(queue)}_retry", arguments, _key(queue))

    def _rung(self, queue: str, seconds: int) -> Queue:
        # The name contains the delay, so a changed setting never conflicts with an existing queue.
        # With at-least-once, the wait queue keeps a message until the work queue has confirmed it.
        arguments = {
            "x-queue-type": "quorum",
            "x-message-ttl": seconds * 1000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.work(queue),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",  # at-least-once requires this
        }
        return Queue(f"{self.work(queue)}_retry.{seconds}", arguments, self.rung_key(queue, seconds))

    def is_nacked(self, name: str) -> bool:
        """Whether `name` is a queue in which nacked messages wait. There is one for `main` and one for `standalone`."""
        return name in {f"{self.work(queue)}_retry" for queue in ("main", "standalone")}


def _key(queue: str) -> str:
    return "retry" if queue == "main" else f"{queue}.retry"


def whole_seconds(delays_ms: Iterable[int]) -> set[int]:
    """The delays rounded up to whole seconds. A delay of 0 is left out, because it needs no wait queue."""
    return {math.ceil(delay / 1000) for delay in delays_ms if delay > 0}


def rung_for(delay_ms: int, rungs: Iterable[int], spread: Callable[[], float] | None = None) -> int:
    """The seconds that a retry will wait; 0 if it does not wait.

    Args:
        delay_ms: the wanted delay.
        rungs: the delays, in seconds, of the existing wait queues.
        spread: a function that returns a random number in [0, 1), or None. With None, the delay is rounded up. Pass a
            function if the delay was drawn at random. The delay is then rounded up or down at random, and the mean
            stays the same. If all random delays were rounded up, many retries would be due at the same time.
    """
    if delay_ms <= 0:
        return 0
    steps = sorted(rungs)
    wanted = delay_ms / 1000
    upper = min(bisect_left(steps, wanted), len(steps) - 1)
    lower = bisect_right(steps, wanted) - 1
    if spread is None or lower < 0 or lower == upper:
        return steps[upper]
    share = (wanted - steps[lower]) / (steps[upper] - steps[lower])
    return steps[upper] if spread() < share else steps[lower]


_MISMATCH = re.compile(
    r"inequivalent arg '(?P<argument>[^']*)' for (?P<kind>queue|exchange) '(?P<name>[^']*)' "
    r"in vhost '(?P<vhost>[^']*)': received (?P<wanted>.*?),? but current is (?P<found>.*)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Mismatch:
    """An existing queue or exchange with an argument that differs from our declaration."""

    kind: str
    name: str
    argument: str
    wanted: str
    found: str
    vhost: str

    def sentence(self) -> str:
        """A text for operators: what is wrong, and two ways to solve it."""
        command = f"rabbitmqctl delete_queue {self.name} --vhost {self.vhost}"
        if self.kind == "exchange":
            command = f"rabbitmqadmin --vhost={self.vhost} delete exchange name={self.name}"
        return (
            f"The {self.kind} {self.name!r} exists with {self.argument} = {self.found}, but {self.wanted} is wanted. "
            f"Stop producers and consumers, let it run empty, and delete it ({command}); the next start declares it "
            "anew. Or leave it alone, and give BROKER_URL a ?prefix= of its own."
        )


def mismatch(text: str) -> Mismatch | None:
    """Parse the text with which the broker refuses a declaration (406); None if the text has another form."""
    found = _MISMATCH.search(text)
    if found is None:
        return None
    values = {name: value.strip() for name, value in found.groupdict().items()}
    for name in ("wanted", "found"):
        value = re.sub(r"^the value '(.*)' of type '\w+'$", r"'\1'", values[name])
        values[name] = "no value" if value == "none" else value
    return Mismatch(**values)


def earlier_retries(headers: dict[str, Any], work_queue: str) -> int:
    """How often a foreign message was retried before this project received it; never more than MAX_RETRIES allows.

    The result is the larger of two counts:

    - RabbitMQ's count of rejections in the header `x-death`. The entry is found by queue and reason, not by position:
      if the message has waited in another queue, the first entry is not the newest rejection.
    - The header `x-retry-count`. It is needed because RabbitMQ 4 restarts its own counts when a client sends a message
      back.
    """
    own = headers.get("x-retry-count")
    counts = [own if isinstance(own, int) and not isinstance(own, bool) else 0]
    deaths = read_deaths(headers.get("x-death"))
    counts += [death.count or 0 for death in deaths if (death.queue, death.reason) == (work_queue, REJECTED)]
    return max(0, min(max(counts), MAX_RETRIES[1]))
