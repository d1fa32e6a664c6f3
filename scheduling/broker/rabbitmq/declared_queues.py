"""Knows which queues this process declares: the wait queues of its retries, and the work queues that it uses."""

from __future__ import annotations

import random
from collections.abc import Iterable

from scheduling.broker.rabbitmq.ladder import rung_for, whole_seconds
from scheduling.broker.rabbitmq.queue import Queue
from scheduling.broker.rabbitmq.topology import WORK, Topology

MOST_RUNGS = 200
"""The maximum number of different delays for which this process declares wait queues.

The number is limited, because wait queues are never removed. Removing a queue could lose messages."""

LADDERS = ("main", "standalone")
"""The work queues with a wait queue for each delay. The others have wait queues for the delays that they need."""


class DeclaredQueues:
    """The queues that are declared on each new connection, beside those that always exist.

    The caller's thread changes the attributes, and the broker's thread reads them. So each change replaces a value.

    Args:
        ladder: the delays, in seconds, of the wait queues that always exist.
    """

    def __init__(self, topology: Topology, ladder: Iterable[int]) -> None:
        self._topology = topology
        self._delays = frozenset(ladder)
        self._rungs: dict[str, frozenset[int]] = {}
        """Maps each work queue whose retries this process publishes to the delays, in seconds, that it needs."""
        self.named: tuple[str, ...] = ()
        """The work queues that this process uses and that not every deployment has."""

    def everything(self) -> tuple[Queue, ...]:
        """All queues, without the base of the topology."""
        named = [part for queue in self.named for part in self._topology.named(queue)]
        rungs = [part for queue in self._rungs for part in self._topology.rungs(queue, self._seconds(queue))]
        return (*named, *rungs)

    def waits_for(self, queue: str) -> bool:
        """Whether the wait queues of this work queue are declared."""
        return queue in self._rungs

    def use(self, queue: str) -> tuple[Queue, ...]:
        """Take note of a work queue to which messages are published; returns the queues that are new."""
        if queue in WORK or queue in self.named:
            return ()
        self.named = (*self.named, queue)
        return self._topology.named(queue)

    def retry(self, delays_ms: Iterable[int], queues: Iterable[str]) -> tuple[Queue, ...]:
        """Take note of the delays of retries; returns the wait queues that are new.

        Delays beyond MOST_RUNGS get no wait queue of their own. `delay` chooses an existing delay for them.
        """
        seconds = whole_seconds(delays_ms)
        wanted = frozenset(sorted(seconds - self._delays)[: max(0, MOST_RUNGS - len(self._delays))])
        self._delays |= wanted
        exact = frozenset(rung_for(delay * 1000, self._delays) for delay in seconds)
        new: list[Queue] = []
        for queue in queues:
            self.use(queue)
            missing = wanted if queue in LADDERS else exact - self._rungs.get(queue, frozenset())
            self._rungs = {**self._rungs, queue: self._rungs.get(queue, frozenset()) | missing}
            new += self._topology.rungs(queue, missing)
        return tuple(new)

    def delay(self, delay_ms: int, queue: str, drawn: bool) -> int:
        """The milliseconds that a retry will wait; 0 for the immediate queue, whose retries never wait."""
        if queue == "immediate":
            return 0
        return rung_for(delay_ms, self._delays, random.random if drawn else None) * 1000

    def _seconds(self, queue: str) -> frozenset[int]:
        return self._delays if queue in LADDERS else self._rungs[queue]
