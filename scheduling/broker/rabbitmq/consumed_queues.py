"""The work queues that this process consumes, and their consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from scheduling.broker.base import QueueUnavailable
from scheduling.broker.rabbitmq.declaration import Declared


@dataclass(eq=False)
class ConsumedQueue:
    """One work queue that this process consumes, and its consumer.

    Args:
        name: the broker's name.
        queue: our own name.
        prefetch: how many of its messages may be unanswered.
        consumer: the tag of its consumer; empty while it is not consumed.
        unanswered: how many of its messages are unanswered.
        brought: how many messages it has brought.
        away: whether it cannot be used now.
        doubted: `brought` when the broker last said that the queue holds messages and brings none; None if it does
            not say so.
    """

    name: str
    queue: str
    prefetch: int
    consumer: str = ""
    unanswered: int = 0
    brought: int = 0
    away: bool = False
    doubted: int | None = None

    @property
    def hungry(self) -> bool:
        """Whether the broker may deliver more messages."""
        return bool(self.consumer) and self.unanswered < self.prefetch


class ConsumedQueues:
    """The work queues that one channel consumes. The methods run in the broker's thread."""

    def __init__(self) -> None:
        self._queues: dict[str, ConsumedQueue] = {}

    def __iter__(self) -> Iterator[ConsumedQueue]:
        return iter(list(self._queues.values()))

    def named(self, name: str) -> ConsumedQueue:
        """The queue with this name of the broker."""
        return self._queues[name]

    def want(self, wanted: Sequence[ConsumedQueue]) -> bool:
        """Take over the numbers of these queues; returns whether anything is to be consumed."""
        for queue in wanted:
            self._queues.setdefault(queue.name, queue).prefetch = queue.prefetch
        return any(queue.prefetch for queue in self)

    def learn(self, declared: Declared) -> None:
        """Take note of the queues that cannot be used. A queue may exist even if it cannot be declared."""
        for queue in self:
            queue.away = isinstance(declared.errors.get(queue.name), QueueUnavailable)

    def forget(self) -> None:
        """Forget the consumers of a lost channel."""
        for queue in self:
            queue.consumer, queue.unanswered = "", 0

    def consume(self, channel: Any, on_message: Callable[..., None], consuming: Callable[[Any], None]) -> None:
        """Consume the queues that can be used and are not consumed, the first ones first.

        Args:
            on_message: called with the queue, the channel and the parts of a message.
            consuming: called each time the broker has accepted a consumer.
        """
        for queue in self:
            if queue.prefetch and not queue.consumer and not queue.away:
                # The number holds for each consumer that is made after it.
                channel.basic_qos(prefetch_count=queue.prefetch)
                queue.consumer = channel.basic_consume(queue.name, partial(on_message, queue), callback=consuming)

    def cancel(self, channel: Any, done: Callable[[], None]) -> None:
        """Cancel the consumers, then call `done`. The messages that they have brought stay."""
        tags = [queue.consumer for queue in self if queue.consumer]
        for queue in self:
            queue.consumer = ""
        for tag in tags[:-1]:
            channel.basic_cancel(tag)
        if tags:
            channel.basic_cancel(tags[-1], callback=lambda _frame: done())
        else:
            done()

    def name_of(self, tag: str) -> str:
        """The broker's name of the queue with this consumer."""
        return next((queue.name for queue in self if queue.consumer == tag), "a queue")
