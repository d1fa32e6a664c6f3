"""Names and arguments of the exchange and the queues, and which wait queue a delay goes to: pure.

Every argument here was measured under injected crashes on RabbitMQ 3.10, 4.0 and 4.3. Changing one
on an existing name is refused by the broker (406): it needs another name, or the queue deleted.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

LADDER = (
    1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 150, 180, 240, 300, 360, 450, 600,
    750, 900, 1200, 1500, 1800, 2400, 2700, 3600,
)  # fmt: skip
"""Seconds of the wait queues that always exist; neighbours differ by at most a third."""

WORK = {
    "main": "cron_scheduler",
    "standalone": "cron_scheduler_standalone",
    "immediate": "cron_scheduler_immediate",
}
"""The queues that consumers serve, by our own name for each."""

DELIVERY_LIMIT = 25
"""Of the immediate queue. A policy allows at most 20 attempts and decides first; the broker's limit
only ends a message that brings its consumers down before they can count. Each crash counts for
every message the consumer held, so it must not be tight."""

MAX_RETRY_COUNT = 19

_CLASSIC = {"x-queue-type": "classic"}
"""The same as no type, for the broker and for other clients that declare these names, except where
a vhost's default type is quorum: there the main queue's dead-letter key would lose messages."""


@dataclass(frozen=True)
class Queue:
    """One durable queue; `binding` is its key on the dead-letter exchange, None for none."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    binding: str | None = None


@dataclass(frozen=True)
class Topology:
    """Everything that is declared.

    Args:
        prefix: before every name, so that several projects, or tests, can share a vhost.
        retry_delay_ms: how long a raw nack waits (CRON_RETRY_DELAY_MS).
    """

    prefix: str = ""
    retry_delay_ms: int = 30_000

    @property
    def exchange(self) -> str:
        """The dead-letter exchange: direct, durable."""
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
            # The standalone queue has its own way back, see `rung_key`.
            Queue(self.work("standalone"), self._returning(_key("standalone"))),
            self._nacked("standalone"),
            Queue(
                self.work("immediate"),
                {
                    "x-queue-type": "quorum",  # only quorum queues count deliveries
                    "x-delivery-limit": DELIVERY_LIMIT,
                    "x-dead-letter-exchange": self.exchange,
                    # Never `retry`: coming back without a rejection is a cycle, which the broker drops.
                    "x-dead-letter-routing-key": "failed",
                },
            ),
        )

    def rungs(self, queue: str, seconds: Iterable[int]) -> tuple[Queue, ...]:
        """The wait queues of these delays for the main or the standalone queue; the immediate one has none."""
        if queue == "immediate":
            return ()
        return tuple(self._rung(queue, each) for each in sorted(set(seconds)))

    def rung_key(self, queue: str, seconds: int) -> str:
        """The routing key on the exchange that lets a message come back to `queue` after a delay.

        The standalone queue has a ladder of its own. The alternatives were weighed: rungs that return to
        the key a message was published with need an exchange for each rung, and one ladder whose messages
        the main consumer forwards makes standalone retries wait for a consumer that may not even run.
        A second ladder has no new way to fail. It costs 34 idle queues, about 2 MB, and up to RabbitMQ 3.13
        three reserved file handles each, of which a broker started with `ulimit -n 1024` has 927: so only
        the consumers of a work queue declare its ladder. Nobody else sends anything there.
        """
        return f"{_key(queue)}.{seconds}"

    def _returning(self, key: str) -> dict[str, Any]:
        return {
            **_CLASSIC,
            "x-message-deduplication": True,  # accepted and ignored where the plugin is missing
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
        # The name holds the delay, so a changed setting never contradicts an existing queue.
        # Quorum with at-least-once: the only hop that the broker makes alone is confirmed inside it.
        arguments = {
            "x-queue-type": "quorum",
            "x-message-ttl": seconds * 1000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self.work(queue),
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",  # at-least-once asks for it
        }
        return Queue(f"{self.work(queue)}_retry.{seconds}", arguments, self.rung_key(queue, seconds))

    def is_nacked(self, name: str) -> bool:
        """Whether `name` is one of the two queues in which raw nacks wait out CRON_RETRY_DELAY_MS."""
        return name in {f"{self.work(queue)}_retry" for queue in ("main", "standalone")}


def _key(queue: str) -> str:
    return "retry" if queue == "main" else f"{queue}.retry"


def whole_seconds(delays_ms: Iterable[int]) -> set[int]:
    """Rungs that hold these delays, rounded up to whole seconds; a delay of 0 needs none."""
    return {math.ceil(delay / 1000) for delay in delays_ms if delay > 0}


def rung_for(delay_ms: int, rungs: Iterable[int], spread: Callable[[], float] | None = None) -> int:
    """The seconds a retry will wait, 0 for none.

    Args:
        delay_ms: the delay that is wanted.
        rungs: the seconds of the wait queues there are.
        spread: a random number in [0, 1) for a delay that was drawn at random: it goes to either
            neighbour, weighted so that the mean is kept (rounding one way would bunch all of them).
            None for a delay that was asked for: it is never shortened.
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
    """A name exists with another argument than ours."""

    kind: str
    name: str
    argument: str
    wanted: str
    found: str
    vhost: str

    def sentence(self) -> str:
        """What is wrong, and the two ways out."""
        command = f"rabbitmqctl delete_queue {self.name} --vhost {self.vhost}"
        if self.kind == "exchange":
            command = f"rabbitmqadmin --vhost={self.vhost} delete exchange name={self.name}"
        return (
            f"The {self.kind} {self.name!r} exists with {self.argument} = {self.found}, but {self.wanted} is wanted. "
            f"Stop producers and consumers, let it run empty, and delete it ({command}); the next start declares it "
            "anew. Or leave it alone, and give BROKER_URL a ?prefix= of its own."
        )


def mismatch(text: str) -> Mismatch | None:
    """Read the broker's refusal (406) of a declaration; None when it says something else."""
    found = _MISMATCH.search(text)
    if found is None:
        return None
    values = {name: value.strip() for name, value in found.groupdict().items()}
    for name in ("wanted", "found"):
        value = re.sub(r"^the value '(.*)' of type '\w+'$", r"'\1'", values[name])
        values[name] = "no value" if value == "none" else value
    return Mismatch(**values)


def earlier_retries(headers: dict[str, Any], work_queue: str) -> int:
    """How often a foreign message was retried before it came to us.

    RabbitMQ's `x-death` is read by (queue, reason) only: its first entry is not the newest rejection
    once the message has waited in another queue, and RabbitMQ 4 restarts counts that clients sent back.
    """
    own = headers.get("x-retry-count")
    counts = [own if isinstance(own, int) and not isinstance(own, bool) else 0]
    counts.append(deaths(headers).get((work_queue, "rejected"), 0))
    return max(0, min(max(counts), MAX_RETRY_COUNT))


def deaths(headers: dict[str, Any]) -> dict[tuple[str, str], int]:
    """The counts of `x-death`, by queue and reason; whatever is not shaped like RabbitMQ's is left out."""
    found: dict[tuple[str, str], int] = {}
    entries = headers.get("x-death")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("count"), int):
            key = (str(entry.get("queue", "")), str(entry.get("reason", "")))
            found[key] = max(found.get(key, 0), entry["count"])
    return found
