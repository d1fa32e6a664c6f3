"""Declares the exchange, the queues and the bindings on a separate channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable, TopologyMismatch
from scheduling.broker.rabbitmq.io_thread import IoThread
from scheduling.broker.rabbitmq.topology import Queue, Topology, mismatch
from scheduling.logs import get_logger

log = get_logger(__name__)

PRECONDITION_FAILED = 406


class Declaration:
    """Declares the exchange and the given queues once, as soon as the instance is made.

    Every declaration uses a new channel, because the broker closes the channel of a refused declaration. Also, RabbitMQ
    3.10 crashes a channel that still uses a queue after the queue was deleted and declared with another type.

    Args:
        done: called once. The arguments are the error (or None) and a dict that maps each queue name to its number of
            ready messages. The dict always contains the failed queue after a success.
        patience: the time limit in seconds. The limit is needed, because a quorum queue without a leader never answers.
    """

    def __init__(
        self,
        loop: IoThread,
        connection: Any,
        topology: Topology,
        queues: Sequence[Queue],
        done: Callable[[BrokerError | None, dict[str, int]], None],
        patience: float,
    ) -> None:
        self._loop, self._connection, self._topology, self._done = loop, connection, topology, done
        self._queues, self._patience = list(queues), patience
        self._ready: dict[str, int] = {}
        self._kept: set[str] = set()
        """The names of queues that keep their old arguments for now."""
        self._channel: Any = None
        self._timer = loop.later(patience, self._too_late)
        self._open()

    def _open(self) -> None:
        try:
            self._connection.channel(on_open_callback=self._opened)
        except exceptions.AMQPError as error:
            self._finish(BrokerUnavailable(f"The connection was lost while queues were declared: {error!r}"))

    def _opened(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._closed)
        channel.exchange_declare(self._topology.exchange, exchange_type="direct", durable=True, callback=_ignore)
        # pika waits for the answer to each declaration before it sends the next one, so the order is kept.
        for queue in self._queues:
            if queue.name not in self._kept:
                self._declare(channel, queue)
        channel.queue_declare(self._topology.failed, passive=True, callback=self._last)

    def _last(self, frame: Any) -> None:
        self._ready[self._topology.failed] = frame.method.message_count
        self._finish(None)

    def _declare(self, channel: Any, queue: Queue) -> None:
        def declared(frame: Any) -> None:
            self._ready[queue.name] = frame.method.message_count

        channel.queue_declare(queue.name, durable=True, arguments=queue.arguments, callback=declared)
        if queue.binding is not None:
            channel.queue_bind(queue.name, self._topology.exchange, routing_key=queue.binding, callback=_ignore)

    def _closed(self, channel: Any, reason: BaseException) -> None:
        if channel is not self._channel:
            return
        self._channel = None
        if not isinstance(reason, exceptions.ChannelClosedByBroker):
            self._finish(BrokerUnavailable("The connection was lost while queues were declared."))
            return
        found = mismatch(reason.reply_text) if reason.reply_code == PRECONDITION_FAILED else None
        if found is None:
            self._finish(BrokerUnavailable(f"A queue cannot be declared: {reason.reply_code} {reason.reply_text}"))
        elif found.argument == "x-message-ttl" and self._topology.is_nacked(found.name):
            self._replace(found.name, found.found, found.wanted)
        else:
            self._finish(TopologyMismatch(found.sentence()))

    def _replace(self, name: str, old: str, new: str) -> None:
        """Replace the queue of nacked messages after CRON_RETRY_DELAY_MS was changed.

        The broker checks that the queue is empty and deletes it in one step. A queue that holds messages keeps its old
        arguments until a later declaration replaces the queue. This case is rare: the queue is nearly always empty.
        """
        self._kept.add(name)

        def opened(channel: Any) -> None:
            def deleted(_frame: Any) -> None:
                self._kept.discard(name)
                log.info("The queue %s waits %s ms from now on (before: %s)", name, new, old)
                channel.close()
                self._open()

            def refused(_channel: Any, reason: BaseException) -> None:
                if isinstance(reason, exceptions.ChannelClosedByBroker):
                    log.warning("The queue %s still waits %s ms, not %s: it holds messages", name, old, new)
                    self._open()

            channel.add_on_close_callback(refused)
            channel.queue_delete(name, if_unused=True, if_empty=True, callback=deleted)

        self._connection.channel(on_open_callback=opened)

    def _too_late(self) -> None:
        self._timer = None
        self._finish(BrokerUnavailable(f"RabbitMQ did not answer a declaration within {self._patience:.0f} s."))

    def _finish(self, error: BrokerError | None) -> None:
        if self._done is _nothing:
            return
        done, self._done = self._done, _nothing
        self._loop.cancel(self._timer)
        channel, self._channel = self._channel, None
        if channel is not None and channel.is_open:
            channel.close()
        done(error, self._ready)


def _ignore(_frame: Any) -> None:
    """Do nothing. Without a callback, pika would not wait for the answer."""


def _nothing(_error: BrokerError | None, _ready: dict[str, int]) -> None:
    """Do nothing. After the first call of `done`, this function replaces `done`."""
