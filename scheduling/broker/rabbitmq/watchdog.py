"""Reconnects a consumer that receives nothing although one of its queues holds messages.

The watchdog also gives messages back to the queue if they wait too long for a slot of this consumer.
"""

from __future__ import annotations

from typing import Any

from scheduling.broker.base import BrokerUnavailable
from scheduling.broker.rabbitmq.consumed_queues import ConsumedQueue
from scheduling.broker.rabbitmq.subscription import Subscription
from scheduling.logs import get_logger

log = get_logger(__name__)

HOLD_SECONDS = 2.0
"""How long a message may wait in this process for a free slot. After this time, the message goes back to the queue."""

DOUBT_TURNS = 5
"""Once in this many checks, the watchdog asks the broker how many messages the queue still holds."""


class Watchdog:
    """Checks one subscription every second, in the loop's thread."""

    look_seconds = 1.0

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._turns = 0
        subscription.loop.later(self.look_seconds, self._look)

    def _look(self) -> None:
        subscription = self._subscription
        if subscription.closed:
            return
        subscription.loop.later(self.look_seconds, self._look)
        if subscription.buffer.age() > HOLD_SECONDS and not subscription.paused:
            # All slots are busy with runs whose messages did not come through this channel.
            log.debug("Messages wait for a slot here; they go back to the queue")
            subscription.pause()
        self._turns += 1
        if self._turns % DOUBT_TURNS == 0:
            for queue in subscription.queues:
                self._doubt(queue)

    def _doubt(self, queue: ConsumedQueue) -> None:
        subscription, reconnecting = self._subscription, self._subscription.reconnecting
        connection, brought = reconnecting.connection, queue.brought
        answers: list[bool] = []
        if not reconnecting.up or not queue.hungry:
            queue.doubted = None
            return

        def opened(channel: Any) -> None:
            channel.queue_declare(queue.name, passive=True, callback=lambda frame: counted(channel, frame))
            # If the queue is missing, the broker closes this channel. This counts as an answer, because the broker also
            # cancels the subscription's consumer, and the subscription then reconnects.
            channel.add_on_close_callback(lambda _channel, _reason: answers.append(True))

        def counted(channel: Any, frame: Any) -> None:
            answers.append(True)
            channel.close()
            self._compare(connection, queue, brought, frame.method.message_count)

        def judge() -> None:
            if not answers and connection is reconnecting.connection and not subscription.closed:
                reconnecting.drop(BrokerUnavailable("RabbitMQ does not answer the consumer."))

        connection.channel(on_open_callback=opened)
        subscription.loop.later(self.look_seconds * (DOUBT_TURNS - 0.5), judge)

    def _compare(self, connection: Any, queue: ConsumedQueue, brought: int, held: int) -> None:
        """Drop the connection if two answers in a row show waiting messages and none was delivered in between."""
        reconnecting = self._subscription.reconnecting
        if held == 0 or not queue.hungry or brought != queue.brought:
            queue.doubted = None
        elif queue.doubted != brought:
            queue.doubted = brought
        elif connection is reconnecting.connection:
            queue.doubted = None
            reconnecting.drop(BrokerUnavailable(f"{queue.name} holds messages and brings none."))
