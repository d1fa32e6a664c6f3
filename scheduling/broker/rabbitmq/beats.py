"""Keeps the newest beat of the deployment in a queue of its own, which holds one message.

The queue lives beside the live queues. So a database that is restored beside them is told by the newer beat. A broker
that is set up anew has no beat, and says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pika
from pika import exceptions, spec

from scheduling.broker.base import BrokerUnavailable
from scheduling.broker.rabbitmq.connection import ReconnectingConnection
from scheduling.broker.rabbitmq.io_thread import IoThread, refuse, resolve
from scheduling.broker.rabbitmq.publisher import Publisher
from scheduling.broker.rabbitmq.topology import Topology
from scheduling.logs import get_logger

log = get_logger(__name__)

READ_SECONDS = 1.0
UP_POLL_SECONDS = 0.02

TRIES, TRY_SECONDS = 4, 0.05
"""A reader holds the message for a moment, so that the queue looks empty to another reader."""

PERSISTENT = 2

MOST_CHANNELS = 4
"""A queue whose node is away, or that has lost the majority of its nodes, does not answer. Its channels stay open until
it does, so there are at most so many of them."""


class Beats:
    """Writes and reads the beat over the connection that publishes, each time over a channel of its own.

    Every time the queue is declared, so a queue that was deleted comes back. A channel that the broker closes, because
    it refuses the queue, disturbs nothing else.
    """

    def __init__(
        self, loop: IoThread, topology: Topology, connection: ReconnectingConnection, publisher: Publisher
    ) -> None:
        self._loop, self._queue, self._publishing, self._publisher = loop, topology.beat, connection, publisher
        self._channels = 0
        self._writing: Any = None
        """The connection over which a beat is being written."""
        self._newest: bytes | None = None
        self._refused = ""

    # --- the caller's thread ---------------------------------------------------------------

    def write(self, body: bytes) -> None:
        """Replace the message. Nothing happens while the connection is down or blocked by an alarm."""
        self._loop.call(partial(self._write, body))

    def read(self) -> bytes | None:
        """The message; None if there is none, or if the broker refuses the queue.

        Raises:
            BrokerUnavailable: there is no connection.
        """
        return self._loop.ask(self._ask, READ_SECONDS * 2, "reading the newest beat")

    # --- the loop's thread -----------------------------------------------------------------

    def _write(self, body: bytes) -> None:
        """Write one beat after the other: channels have no order among each other, and an older beat would stay."""
        if not self._publishing.up or self._publisher.blocked:
            return
        self._newest = body
        connection = self._publishing.connection
        if self._writing is connection:
            return
        self._writing = connection

        def declared(channel: Any) -> None:
            newest, self._newest = self._newest or body, None
            channel.basic_publish("", self._queue.name, newest, pika.BasicProperties(delivery_mode=PERSISTENT))
            sent_over.append(channel)
            channel.close()

        def closed() -> None:
            if self._writing is connection:
                self._writing = None
                if sent_over and self._newest is not None:
                    self._write(self._newest)

        sent_over: list[Any] = []
        self._with_queue(declared, closed)

    def _ask(self, answer: Future[bytes | None]) -> None:
        self._publishing.start()
        self._read_when_up(answer, round(READ_SECONDS / UP_POLL_SECONDS))

    def _read_when_up(self, answer: Future[bytes | None], polls: int) -> None:
        if self._publishing.up and not self._publisher.blocked:
            self._loop.later(READ_SECONDS, lambda: resolve(answer, None))  # the queue's node may be away
            self._with_queue(
                lambda channel: _Reader(self._loop, channel, self._queue.name, answer),
                lambda: resolve(answer, None),
            )
        elif self._publishing.error is not None or polls <= 0:
            refuse(answer, self._publishing.error or BrokerUnavailable("The connection is not open yet."))
        else:
            self._loop.later(UP_POLL_SECONDS, lambda: self._read_when_up(answer, polls - 1))

    def _with_queue(self, use: Callable[[Any], object], closed: Callable[[], object]) -> None:
        """Open a channel, declare the queue, and call `use`. Call `closed` when the channel is closed."""
        if self._channels >= MOST_CHANNELS:
            closed()
            return

        def ended(_channel: Any, reason: BaseException) -> None:
            self._channels -= 1
            if isinstance(reason, exceptions.ChannelClosedByBroker) and reason.reply_text != self._refused:
                self._refused = reason.reply_text
                log.warning("The queue %s cannot keep the newest beat: %s", self._queue.name, reason.reply_text)
            closed()

        def opened(channel: Any) -> None:
            channel.queue_declare(
                self._queue.name, durable=True, arguments=self._queue.arguments, callback=lambda _frame: use(channel)
            )

        try:
            channel = self._publishing.connection.channel(on_open_callback=opened)
        except exceptions.AMQPError:  # the connection was lost a moment ago
            closed()
            return
        self._channels += 1
        channel.add_on_close_callback(ended)


class _Reader:
    """Gets the message and gives it back. While another reader holds it, the queue looks empty; so it tries again."""

    def __init__(self, loop: IoThread, channel: Any, queue: str, answer: Future[bytes | None]) -> None:
        self._loop, self._channel, self._queue, self._answer = loop, channel, queue, answer
        self._tries = TRIES
        channel.add_callback(self._empty, [spec.Basic.GetEmpty], one_shot=False)
        self._get()

    def _get(self) -> None:
        if self._channel.is_open:
            self._channel.basic_get(self._queue, self._got)

    def _got(self, channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        channel.basic_nack(method.delivery_tag, requeue=True)
        channel.close()
        resolve(self._answer, body)

    def _empty(self, _frame: Any) -> None:
        self._tries -= 1
        if self._tries:
            self._loop.later(TRY_SECONDS, self._get)
        else:
            self._channel.close()
            resolve(self._answer, None)
