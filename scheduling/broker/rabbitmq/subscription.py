"""Consumes work queues. After the loss of the channel, a queue or the connection, consuming starts again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable, Delivery
from scheduling.broker.rabbitmq.connection import ReconnectingConnection
from scheduling.broker.rabbitmq.consumed_queues import ConsumedQueue, ConsumedQueues
from scheduling.broker.rabbitmq.declaration import Declared
from scheduling.broker.rabbitmq.delivery_buffer import DeliveryBuffer, DeliveryTag, identity_of
from scheduling.broker.rabbitmq.io_thread import IoThread
from scheduling.broker.rabbitmq.messages import read, returns_of
from scheduling.core.origin import Wanted
from scheduling.core.queues import later
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
        self.queues = ConsumedQueues()
        self.paused = self.closed = False
        self._wanted = False
        self._generation = self._failures = 0
        self._channel: Any = None

    # --- the caller's thread ---------------------------------------------------------------

    def take(self, limit: int) -> list[Delivery]:
        """Take at most `limit` deliveries from the buffer."""
        self._resume()
        return self.buffer.take(limit)

    def take_wanted(self, queues: Sequence[str], limit: int, wanted: Wanted) -> list[Delivery]:
        """Take at most `limit` deliveries of these queues, and of these origins, from the buffer."""
        self._resume()
        return self.buffer.take_wanted(queues, limit, {origin for origin in self.buffer.origins() if wanted(origin)})

    def waiting(self) -> bool:
        """Whether `take` would return a delivery. Also resets the wake-up socket."""
        self._resume()
        return self.buffer.asked()

    @property
    def consuming(self) -> bool:
        """Whether the broker brings messages, or would bring them to a free slot."""
        return self.paused or any(queue.consumer for queue in self.queues)

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

    def want(self, wanted: Sequence[ConsumedQueue]) -> None:
        """Consume these queues. If each prefetch is 0, consuming stops, and the waiting deliveries are given back."""
        self._wanted = self.queues.want(wanted)
        if not self._wanted:
            self._dismiss(all_of_them=True)
            return
        self.reconnecting.start()
        if self.reconnecting.up and self._channel is None:
            self.opened(self.reconnecting.connection)
        else:
            self._consume_again()  # a prefetch of 0 has cancelled the consumers and kept their channel

    def pause(self) -> None:
        """Give back the waiting deliveries. Consume nothing until the next call of `take` or `waiting`."""
        self.paused = True
        self._dismiss()

    def opened(self, connection: Any) -> None:
        """Declare the topology on a new connection, open a channel, and consume."""
        if not self._wanted:
            return

        begun = time.monotonic()

        def declared(declared: Declared) -> None:
            if connection is not self.reconnecting.connection or not self.reconnecting.up or not self._wanted:
                return
            self.queues.learn(declared)
            if all(queue.away for queue in self.queues):
                # The class `QueueStates` has logged the outage. A declaration that got no answer was a long wait.
                self._open_later(connection, time.monotonic() - begun)
            else:
                connection.channel(on_open_callback=self._channel_opened)
                self._look_for_away(connection)

        self._declare(connection, declared)

    def _look_for_away(self, connection: Any) -> None:
        """Consume the queues that cannot be used now, as soon as they can be used."""

        def declared(declared: Declared) -> None:
            if connection is self.reconnecting.connection and self.reconnecting.up and self._wanted:
                self.queues.learn(declared)
                self._consume_again()
                self._look_for_away(connection)

        def look() -> None:
            if connection is self.reconnecting.connection and self.reconnecting.up and self._wanted:
                self._declare(connection, declared)

        if any(queue.away for queue in self.queues):
            self.loop.later(LONGEST_DELAY, look)

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
        self._channel = None
        self.queues.forget()

    def close(self) -> None:
        """Close the wake-up socket. The channel was closed with its connection."""
        self.closed, self._wanted = True, False
        self.buffer.close()

    def _channel_opened(self, channel: Any) -> None:
        self._generation += 1
        self._channel, self.paused = channel, False
        self.queues.forget()
        channel.add_on_close_callback(self._channel_closed)
        channel.add_on_cancel_callback(self._cancelled)
        self._consume_again()

    def _consume_again(self) -> None:
        def consuming(_frame: Any) -> None:
            self._failures = 0

        channel = self._channel
        if channel is not None and channel.is_open and self._wanted and not self.paused:
            self.queues.consume(channel, self._on_message, consuming)

    def _dismiss(self, *, all_of_them: bool = False) -> None:
        """Cancel the consumers, then give back the waiting deliveries; see `DeliveryBuffer.clear`."""
        if self._channel is not None and self._channel.is_open:
            self.queues.cancel(self._channel, lambda: self._return_waiting(all_of_them=all_of_them))

    def _return_waiting(self, *, all_of_them: bool) -> None:
        for delivery in self.buffer.clear(all_of_them=all_of_them):
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

    def _cancelled(self, frame: Any) -> None:
        """Reconnect after a queue was deleted or its node died. Otherwise RabbitMQ 4.3 leaves a bad consumer."""
        name = self.queues.name_of(frame.method.consumer_tag)
        text = f"RabbitMQ ended the consumer of {name}: the queue was deleted, or its node is down."
        self.reconnecting.drop(BrokerUnavailable(text))

    def _on_message(self, queue: ConsumedQueue, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        if channel is not self._channel:
            return
        queue.unanswered += 1
        queue.brought += 1
        arrived = read(body, properties, queue.name)
        turn = min(arrived.due, time.time()) + later(queue.queue).total_seconds()
        tag = DeliveryTag(
            self._generation, method.delivery_tag, queue.name, first_failure=arrived.first_failure, turn=turn,
            returns=returns_of(properties),
        )  # fmt: skip
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
        delivery = Delivery(message, tag, arrived.message_id, arrived.earlier, deaths=arrived.deaths, queue=queue.queue)
        if not self.buffer.put(delivery):
            # The message is a copy. This consumer already runs the attempt, but the channel of the first delivery was
            # lost. The run can finish without a message.
            self._answer(tag, "ack")

    def _answer(self, tag: DeliveryTag, how: str) -> None:
        if tag.generation != self._generation or self._channel is None or not self._channel.is_open:
            return
        self.queues.named(tag.queue).unanswered -= 1
        if how == "ack":
            self._channel.basic_ack(tag.tag)
        elif how == "nack":
            self._channel.basic_nack(tag.tag, requeue=False)
        elif how == "return":
            self._channel.basic_nack(tag.tag, requeue=True)
        else:
            # Reject instead of nack: RabbitMQ 4.3 counts only rejected deliveries towards the delivery limit.
            self._channel.basic_reject(tag.tag, requeue=True)
