"""Consumes one work queue. After the loss of the channel, the queue or the connection, consuming starts again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable, Delivery, QueueUnavailable
from scheduling.broker.rabbitmq.connection import ReconnectingConnection
from scheduling.broker.rabbitmq.declaration import Declared
from scheduling.broker.rabbitmq.delivery_buffer import DeliveryBuffer, DeliveryTag, identity_of
from scheduling.broker.rabbitmq.io_thread import IoThread
from scheduling.broker.rabbitmq.messages import read
from scheduling.logs import get_logger

log = get_logger(__name__)

LONGEST_DELAY = 5.0
"""The longest pause, in seconds, before the channel is opened again. The pause grows with each failure."""


class Subscription:
    """Receives deliveries and keeps them in `buffer` until the caller takes them.

    `take`, `waiting` and `answer` run in the caller's thread. The other methods run in the loop's thread, except
    `close`, which runs after the loop has ended.

    Args:
        unreadable: a function with the arguments (body, properties, problem, done). It parks an unreadable message,
            and then calls `done` in the loop's thread with True if the message is parked.
        declare: declares the topology over the given connection, then calls the given function with the result.
    """

    reconnecting: ReconnectingConnection

    def __init__(
        self,
        loop: IoThread,
        unreadable: Callable[[bytes, Any, str, Callable[[bool], None]], None],
        declare: Callable[[Any, Callable[[Declared], None]], None],
    ) -> None:
        self.loop, self._unreadable, self._declare = loop, unreadable, declare
        self.buffer = DeliveryBuffer()
        self.name = ""
        self.paused = self.closed = False
        self.brought = 0
        self._prefetch = self._generation = self._unanswered = self._failures = 0
        self._channel: Any = None
        self._consumer = ""

    # --- the caller's thread ---------------------------------------------------------------

    def take(self, limit: int) -> list[Delivery]:
        """Take at most `limit` deliveries from the buffer."""
        self._resume()
        return self.buffer.take(limit)

    def waiting(self) -> bool:
        """Whether `take` would return a delivery. Also resets the wake-up socket."""
        self._resume()
        return self.buffer.asked()

    @property
    def consuming(self) -> bool:
        """Whether the broker brings messages, or would bring them to a free slot."""
        return bool(self._consumer) or self.paused

    def answer(self, delivery: Delivery, how: str) -> None:
        """Answer a delivery.

        If the channel of the delivery is lost, nothing is sent.

        Args:
            how: `ack`, `nack` (the broker dead-letters the message), `requeue` (a delivery that failed, it counts
                towards the delivery limit) or `return`.
        """
        self.buffer.answered(delivery)
        self.loop.call(lambda: self._answer(delivery.tag, how))

    def _resume(self) -> None:
        """Resume consuming after a pause. A caller that asks for messages has a free slot."""
        if self.paused:
            self.paused = False
            self.loop.call(self._consume_again)

    # --- the loop's thread -----------------------------------------------------------------

    @property
    def hungry(self) -> bool:
        """Whether the broker may deliver more messages."""
        return bool(self._prefetch) and not self.paused and self._unanswered < self._prefetch

    def want(self, name: str, prefetch: int) -> None:
        """Consume the queue `name`. A prefetch of 0 stops consuming and gives back the waiting deliveries."""
        self.name, self._prefetch = name, prefetch
        if not prefetch:
            self._dismiss()
            return
        self.reconnecting.start()
        if self.reconnecting.up and self._channel is None:
            self.opened(self.reconnecting.connection)
        else:
            self._consume_again()  # a prefetch of 0 has cancelled the consumer and kept its channel

    def pause(self) -> None:
        """Give back the waiting deliveries. Consume nothing until the next call of `take` or `waiting`."""
        self.paused = True
        self._dismiss()

    def opened(self, connection: Any) -> None:
        """Declare the topology on a new connection, open a channel, and consume."""
        if not self._prefetch:
            return

        begun = time.monotonic()

        def declared(declared: Declared) -> None:
            if connection is not self.reconnecting.connection or not self.reconnecting.up or not self._prefetch:
                return
            if isinstance(declared.errors.get(self.name), QueueUnavailable):
                # The class `QueueStates` has logged the outage. A declaration that got no answer was a long wait.
                self._open_later(connection, time.monotonic() - begun)
            else:  # the queue may exist even if it cannot be declared
                connection.channel(on_open_callback=self._channel_opened)

        self._declare(connection, declared)

    def _open_later(self, connection: Any, waited: float = 0.0) -> None:
        """Open the channel again. The first try comes at once, and the next ones later and later."""
        delay = min(0.1 * 2.0**self._failures, LONGEST_DELAY) if self._failures else 0.0
        self._failures += 1

        def open_again() -> None:
            if connection is self.reconnecting.connection and self.reconnecting.up:
                self.opened(connection)

        self.loop.later(max(delay - waited, 0.0), open_again)

    def lost(self, _error: BrokerError | None = None) -> None:
        """Forget a lost channel. The broker delivers the waiting messages again. Started runs continue."""
        self.buffer.forget(self._generation)
        self._generation += 1
        self._channel, self._consumer, self._unanswered = None, "", 0

    def close(self) -> None:
        """Close the wake-up socket. The channel was closed with its connection."""
        self.closed, self._prefetch = True, 0
        self.buffer.close()

    def _channel_opened(self, channel: Any) -> None:
        self._generation += 1
        self._channel, self._unanswered, self.paused = channel, 0, False
        channel.add_on_close_callback(self._channel_closed)
        channel.add_on_cancel_callback(self._cancelled)
        channel.basic_qos(prefetch_count=self._prefetch, callback=lambda _frame: self._consume(channel))

    def _consume(self, channel: Any) -> None:
        def consuming(_frame: Any) -> None:
            self._failures = 0

        if channel is self._channel and channel.is_open and self._prefetch:
            self._consumer = channel.basic_consume(self.name, self._on_message, callback=consuming)

    def _consume_again(self) -> None:
        if self._channel is not None and not self._consumer:
            self._consume(self._channel)

    def _dismiss(self) -> None:
        if self._channel is not None and self._channel.is_open and self._consumer:
            self._channel.basic_cancel(self._consumer, callback=lambda _frame: self._return_waiting())
            self._consumer = ""

    def _return_waiting(self) -> None:
        for delivery in self.buffer.clear():
            self._answer(delivery.tag, "return")

    def _channel_closed(self, channel: Any, reason: BaseException) -> None:
        if channel is not self._channel:
            return
        self.lost()
        reconnecting = self.reconnecting
        if not reconnecting.up or not isinstance(reason, exceptions.ChannelClosedByBroker):
            return  # the connection is lost too, and `lost` was or will be called
        level = logging.DEBUG if self._failures else logging.WARNING  # one line for each outage
        log.log(level, "RabbitMQ closed the consumer's channel and it is opened again: %s", reason.reply_text)
        self._open_later(reconnecting.connection)

    def _cancelled(self, _frame: Any) -> None:
        """Reconnect after the queue was deleted or its node died. Otherwise RabbitMQ 4.3 leaves a bad consumer."""
        text = f"RabbitMQ ended the consumer of {self.name}: the queue was deleted, or its node is down."
        self.reconnecting.drop(BrokerUnavailable(text))

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        if channel is not self._channel:
            return
        self._unanswered += 1
        self.brought += 1
        arrived = read(body, properties, self.name)
        tag = DeliveryTag(self._generation, method.delivery_tag, first_failure=arrived.first_failure)
        message = arrived.message
        if message is None:
            log.error("A message cannot be read and is parked in the failed queue: %s", arrived.problem)

            def done(parked: bool) -> None:
                # A nack works even when publishing does not. A classic queue delivers the message again after
                # CRON_RETRY_DELAY_MS, and parking is tried again. A quorum queue parks it.
                self._answer(tag, "ack" if parked else "nack")

            self._unreadable(body, properties, arrived.problem, done)
            return
        if message.execution_id is not None:
            tag.identity = identity_of(message)
        if not self.buffer.put(Delivery(message, tag, arrived.message_id, arrived.earlier, deaths=arrived.deaths)):
            # The message is a copy. This consumer already runs the attempt, but the channel of the first delivery was
            # lost. The run can finish without a message.
            self._answer(tag, "ack")

    def _answer(self, tag: DeliveryTag, how: str) -> None:
        if tag.generation != self._generation or self._channel is None or not self._channel.is_open:
            return
        self._unanswered -= 1
        if how == "ack":
            self._channel.basic_ack(tag.tag)
        elif how == "nack":
            self._channel.basic_nack(tag.tag, requeue=False)
        elif how == "return":
            self._channel.basic_nack(tag.tag, requeue=True)
        else:
            # Reject instead of nack: RabbitMQ 4.3 counts only rejected deliveries towards the delivery limit.
            self._channel.basic_reject(tag.tag, requeue=True)
