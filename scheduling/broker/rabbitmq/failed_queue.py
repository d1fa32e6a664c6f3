"""Reads the failed queue, removes messages from it, and puts all other messages back in their order.

Only one process at a time reads the queue: a classic queue has an exclusive consumer. A quorum queue has no exclusive
consumers, so the reader first declares an exclusive queue, which belongs to its connection and serves as a lock.

The reader acknowledges only the messages that it removes. When its connection closes, RabbitMQ puts the other messages
back. Tests have shown that only this method keeps the order and the number of
the messages on every RabbitMQ version. Consuming is also seven times faster than fetching single messages.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pika
from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable, FailedQueueBusy, Parked
from scheduling.broker.rabbitmq.client import Client
from scheduling.broker.rabbitmq.errors import explain
from scheduling.broker.rabbitmq.io_thread import refuse, resolve
from scheduling.broker.rabbitmq.messages import deaths_in, id_of, outgoing_identified

READ_LIMIT = 60_000
"""The maximum number of messages to read, the oldest first. RabbitMQ's prefetch count is at most 65,535."""

IDLE_SECONDS = 2.0
"""Reading ends if no further message arrives within this time."""

RETURN_SECONDS, RETURN_LOOK_SECONDS = 1.0, 0.02
"""The longest wait until the remaining messages are back in the queue, and the pause between two checks."""

ACCESS_REFUSED, NOT_FOUND, RESOURCE_LOCKED = 403, 404, 405


class RabbitParking:
    """Reads the failed queue once, over a separate connection. Use it as a context manager.

    Args:
        client: publishes messages again, and counts the messages of the failed queue. The connection goes to the
            address at which the client publishes. Its `patience` is the time limit for connecting. The limit for
            connecting and reading together is five times as long.

    Raises:
        FailedQueueBusy, BrokerUnavailable: when the context is entered.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._address = client, client.address
        self._loop, self._topology, self._patience = client.loop, client.topology, client.patience
        self.messages: Sequence[Parked] = []
        self._found: list[Parked] = []
        self._wanted = self._removed = 0
        self._moved_at = 0.0
        self._connection: Any = None
        self._channel: Any = None
        self._lock, self._holds_lock = f"{self._topology.failed}.reader", False
        self._answer: Future[None] = Future()
        self._over: Future[None] = Future()

    def __enter__(self) -> RabbitParking:
        if self._client.addresses > 1:
            self._client.declare(())  # find an address that works
            self._address = self._client.address
        self._loop.call(self._connect)
        try:
            self._answer.result(self._patience * 5)
        except BaseException as error:
            self._close()
            if isinstance(error, TimeoutError):
                raise BrokerUnavailable("The failed queue could not be read in time.") from None
            raise
        self.messages = self._found
        return self

    def __exit__(self, *_details: object) -> None:
        if self._close():
            self._see_them_back()

    def remove(self, parked: Sequence[Parked]) -> None:
        """Acknowledge messages, so that they leave the queue."""
        tags = [message.tag[0] for message in parked]
        self._removed += len(tags)
        self._loop.call(lambda: self._acknowledge(tags))

    def identify(self, parked: Sequence[Parked]) -> list[Parked]:
        """Publish messages again with a `message_id`. If a new message is confirmed, remove the original message.

        Returns the confirmed new messages.
        """
        identified = [
            outgoing_identified(message.body, message.tag[1], self._topology, number)
            for number, message in enumerate(parked)
        ]
        confirmed = sorted(self._client.send(identified))
        self.remove([parked[number] for number in confirmed])
        return [replace(parked[n], message_id=identified[n].properties.message_id, tag=None) for n in confirmed]

    def _close(self) -> bool:
        """Disconnect; returns whether RabbitMQ confirmed the close in time."""
        self._loop.call(self._disconnect)
        try:
            self._over.result(self._patience)
        except TimeoutError:
            return False
        return True

    def _see_them_back(self) -> None:
        """Wait until the remaining messages are back in the queue.

        RabbitMQ 4 may confirm the close before the messages are back. Without this wait, the next reader could find
        the queue empty and park the same messages again. The wait has a short limit, because another process may
        already have taken the messages.
        """
        held, deadline = len(self._found) - self._removed, time.monotonic() + RETURN_SECONDS
        with suppress(BrokerError):
            while held and self._ready() < held and time.monotonic() < deadline:
                time.sleep(RETURN_LOOK_SECONDS)

    def _ready(self) -> int:
        counted = self._client.declare(()).held.get(self._topology.failed)
        return counted.ready if counted is not None else 0

    # --- the loop's thread -----------------------------------------------------------------

    def _connect(self) -> None:
        try:
            self._connection = pika.SelectConnection(
                self._address.parameters("failed queue", self._patience),
                on_open_callback=lambda connection: connection.channel(on_open_callback=self._opened),
                on_open_error_callback=self._ended,
                on_close_callback=self._ended,
                custom_ioloop=self._loop.selector,
            )
        except (exceptions.AMQPError, OSError) as error:
            self._ended(None, error)

    def _ended(self, _connection: Any, error: BaseException) -> None:
        resolve(self._over, None)
        refuse(self._answer, explain(error, self._address))

    def _opened(self, channel: Any) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._channel_closed)
        if self._topology.quorum:
            channel.queue_declare(self._lock, exclusive=True, callback=self._locked)
        channel.basic_qos(prefetch_count=READ_LIMIT, callback=_ignore)
        channel.queue_declare(self._topology.failed, passive=True, callback=self._counted)

    def _locked(self, _frame: Any) -> None:
        self._holds_lock = True

    def _counted(self, frame: Any) -> None:
        self._wanted = min(frame.method.message_count, READ_LIMIT)
        self._moved_at = time.monotonic()
        # The broker refuses a second reader, so two processes never act on the same message.
        # Consume even if no message is ready: the queue also looks empty while another process holds all messages.
        self._channel.basic_consume(
            self._topology.failed,
            self._on_message,
            exclusive=not self._topology.quorum,
            callback=lambda _frame: self._look(),
        )

    def _on_message(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        if self._answer.done():
            return  # the message arrived after the count, so it stays in the queue
        headers = properties.headers or {}
        error, tag = headers.get("x-last-error"), (method.delivery_tag, properties)
        reason = error if isinstance(error, str) else ""
        self._found.append(Parked(body, id_of(properties), reason, deaths_in(headers), tag))
        self._moved_at = time.monotonic()
        if len(self._found) >= self._wanted:
            resolve(self._answer, None)

    def _look(self) -> None:
        """Stop reading when no more messages arrive. Some of the counted messages may have been removed meanwhile."""
        if self._answer.done():
            return
        if len(self._found) >= self._wanted or time.monotonic() - self._moved_at > IDLE_SECONDS:
            resolve(self._answer, None)
            return
        self._loop.later(0.05, self._look)

    def _channel_closed(self, _channel: Any, reason: BaseException) -> None:
        code = getattr(reason, "reply_code", 0)
        if isinstance(reason, exceptions.ChannelClosedByBroker) and code in (ACCESS_REFUSED, RESOURCE_LOCKED):
            refuse(self._answer, FailedQueueBusy("Another process reads the failed queue at this moment."))
        elif isinstance(reason, exceptions.ChannelClosedByBroker) and code == NOT_FOUND:
            resolve(self._answer, None)  # the queue does not exist, so it holds no messages
        else:
            refuse(self._answer, explain(reason, self._address))

    def _acknowledge(self, tags: Sequence[int]) -> None:
        if self._channel is not None and self._channel.is_open:
            for tag in tags:
                self._channel.basic_ack(tag)

    def _disconnect(self) -> None:
        if self._connection is None or self._connection.is_closed:
            resolve(self._over, None)
        elif not self._connection.is_closing:
            with suppress(exceptions.AMQPError):
                if self._holds_lock and self._channel.is_open:
                    # RabbitMQ 4 may confirm the close before it deletes the connection's exclusive queue. The next
                    # reader would then be told that another process reads.
                    self._channel.queue_delete(self._lock, callback=lambda _frame: self._connection.close())
                else:
                    self._connection.close()


def _ignore(_frame: Any) -> None:
    """Do nothing. Without a callback, pika would not wait for the answer."""
