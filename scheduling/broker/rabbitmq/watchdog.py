"""Watchdog: doubts a consumer that looks alive and gets nothing, and one whose messages wait too long."""

from __future__ import annotations

from typing import Any

from scheduling.broker.base import BrokerUnavailable
from scheduling.broker.rabbitmq.subscription import Subscription
from scheduling.logs import get_logger

log = get_logger(__name__)

LOOK_SECONDS = 1.0

HOLD_SECONDS = 2.0
"""How long a message may wait for a free slot here before it goes back, for other consumers to have."""

DOUBT_TURNS = 5
"""Every so many looks the queue is asked whether it holds what it should have brought."""


class Watchdog:
    """Looks at one subscription each second, in the loop's thread."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._turns = 0
        self._doubted: int | None = None
        """How many messages had been brought when the queue was first found to hold some back."""
        subscription.loop.later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        subscription = self._subscription
        if subscription.closed:
            return
        subscription.loop.later(LOOK_SECONDS, self._look)
        if subscription.tray.age() > HOLD_SECONDS and not subscription.paused:
            # Runs that no message of this channel stands for have all the slots.
            log.debug("Messages wait for a slot here; they go back to the queue")
            subscription.pause()
        self._turns += 1
        if self._turns % DOUBT_TURNS == 0:
            self._doubt()

    def _doubt(self) -> None:
        subscription, link = self._subscription, self._subscription.link
        connection, brought, answers = link.connection, subscription.brought, []  # type: Any, int, list[bool]
        if not link.up or not subscription.hungry:
            self._doubted = None
            return

        def opened(channel: Any) -> None:
            channel.queue_declare(subscription.name, passive=True, callback=lambda frame: counted(channel, frame))
            # A missing queue closes this channel; the consumer's own cancellation mends that.
            channel.add_on_close_callback(lambda _channel, _reason: answers.append(True))

        def counted(channel: Any, frame: Any) -> None:
            answers.append(True)
            channel.close()
            if frame.method.message_count == 0 or not subscription.hungry or brought != subscription.brought:
                self._doubted = None
            elif self._doubted != brought:
                self._doubted = brought
            elif connection is link.connection:
                self._doubted = None
                link.drop(BrokerUnavailable(f"{subscription.name} holds messages and brings none."))

        def judge() -> None:
            if not answers and connection is link.connection and not subscription.closed:
                link.drop(BrokerUnavailable("RabbitMQ does not answer the consumer."))

        connection.channel(on_open_callback=opened)
        subscription.loop.later(LOOK_SECONDS * (DOUBT_TURNS - 0.5), judge)
