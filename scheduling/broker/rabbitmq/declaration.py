"""Declares the exchange, and then each queue for itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable, QueueUnavailable, TopologyMismatch
from scheduling.broker.rabbitmq.io_thread import IoThread
from scheduling.broker.rabbitmq.mismatch import mismatch
from scheduling.broker.rabbitmq.queue import Queue
from scheduling.broker.rabbitmq.queue_declaration import Answer, Held, QueueDeclaration
from scheduling.broker.rabbitmq.topology import Topology

AT_ONCE = 64
"""How many queues are declared at the same time. Each declaration uses a channel; RabbitMQ allows 2047 by default."""


@dataclass
class Declared:
    """The result of a declaration.

    Args:
        held: maps the name of each queue that answered to what it holds. It always contains the failed queue, unless
            this queue did not answer.
        errors: maps the name of each queue that cannot be used to the reason.
        lost: the error that concerns all queues, such as a lost connection; None if there is none.
    """

    held: dict[str, Held] = field(default_factory=dict)
    errors: dict[str, BrokerError] = field(default_factory=dict)
    lost: BrokerError | None = None

    @property
    def error(self) -> BrokerError | None:
        """One error for the whole declaration; None if every queue can be used. A mismatch is the worst error."""
        if self.lost is not None:
            return self.lost
        wrong = [error for error in self.errors.values() if isinstance(error, TopologyMismatch)]
        if wrong:
            return TopologyMismatch(" ".join(str(error) for error in wrong))
        return in_one(list(self.errors.values()))


def in_one(errors: Sequence[BrokerError]) -> BrokerError | None:
    """One error that stands for the errors of several queues; None if there is no error."""
    if len(errors) < 2:
        return errors[0] if errors else None
    return QueueUnavailable(f"{len(errors)} queues cannot be used. The first: {errors[0]}")


class Declaration:
    """Declares the exchange and the given queues once, as soon as the instance is made.

    Each queue is declared on its own channel, so each queue that can be used is declared, whatever the others do.

    Args:
        done: called once with the result.
        patience: the time limit of each queue, in seconds.
    """

    def __init__(
        self,
        loop: IoThread,
        connection: Any,
        topology: Topology,
        queues: Sequence[Queue],
        done: Callable[[Declared], None],
        patience: float,
    ) -> None:
        self._loop, self._connection, self._topology, self._done = loop, connection, topology, done
        names = {queue.name for queue in queues}
        self._waiting: deque[Queue | str] = deque(queues)
        if topology.failed not in names:
            self._waiting.append(topology.failed)
        self._open = 0
        self._patience = patience
        self._result = Declared()
        self._over = False
        self._timer = loop.later(patience, self._too_late)
        try:
            connection.channel(on_open_callback=self._opened)
        except exceptions.AMQPError as error:
            self._end(BrokerUnavailable(f"The connection was lost while queues were declared: {error!r}"))

    def _opened(self, channel: Any) -> None:
        def declared(_frame: Any) -> None:
            channel.close()
            self._stop_timer()
            if not self._over:
                self._next()

        channel.add_on_close_callback(self._closed)
        channel.exchange_declare(self._topology.exchange, exchange_type="direct", durable=True, callback=declared)

    def _closed(self, _channel: Any, reason: BaseException) -> None:
        if isinstance(reason, exceptions.ChannelClosedByClient):
            return
        if not isinstance(reason, exceptions.ChannelClosedByBroker):
            self._end(BrokerUnavailable("The connection was lost while queues were declared."))
            return
        found = mismatch(reason.reply_text)
        if found is not None:
            self._end(TopologyMismatch(found.sentence()))
        else:
            self._end(BrokerUnavailable(f"The exchange cannot be declared: {reason.reply_code} {reason.reply_text}"))

    def _next(self) -> None:
        while self._waiting and self._open < AT_ONCE:
            self._open += 1
            queue = self._waiting.popleft()
            QueueDeclaration(self._loop, self._connection, self._topology, queue, self._told, self._patience)
        if not self._open:
            self._end(None)

    def _told(self, name: str, answer: Answer) -> None:
        if isinstance(answer, Held):
            self._result.held[name] = answer
        elif isinstance(answer, QueueUnavailable | TopologyMismatch):
            self._result.errors[name] = answer
        else:  # the connection is lost
            self._result.lost = answer
            self._waiting.clear()
        self._open -= 1
        # Not at once: an answer may come while `_next` still starts declarations.
        self._loop.call(self._next)

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        self._loop.cancel(timer)

    def _too_late(self) -> None:
        self._timer = None
        self._end(BrokerUnavailable(f"RabbitMQ did not answer a declaration within {self._patience:.0f} s."))

    def _end(self, error: BrokerError | None) -> None:
        if self._over:
            return
        self._over = True
        self._stop_timer()
        if error is not None:
            self._result.lost = error
        self._done(self._result)
