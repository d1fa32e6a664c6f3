"""Subscription: consuming one work queue again and again, whatever happens to channel, queue or broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable, Delivery
from scheduling.broker.rabbitmq.envelope import read
from scheduling.broker.rabbitmq.link import Link
from scheduling.broker.rabbitmq.loop import Loop
from scheduling.broker.rabbitmq.tray import Ticket, Tray
from scheduling.logs import get_logger

log = get_logger(__name__)


class Subscription:
    """What the broker brings lies in `tray` until it is taken.

    `take`, `waiting`, `give_back` and `answer` are called from the caller's thread; the rest happens in
    the loop's.

    Args:
        unreadable: gets (body, properties, problem, done); calls `done(parked)` in the loop's thread.
        declare: declares the topology over the given connection, then calls back.
    """

    link: Link

    def __init__(
        self,
        loop: Loop,
        unreadable: Callable[[bytes, Any, str, Callable[[bool], None]], None],
        declare: Callable[[Any, Callable[[BrokerError | None], None]], None],
    ) -> None:
        self.loop, self._unreadable, self._declare = loop, unreadable, declare
        self.tray = Tray()
        self.name = ""
        self.paused = self.closed = False
        self.brought = 0
        self._prefetch = self._generation = self._unanswered = self._failures = 0
        self._channel: Any = None
        self._consumer = ""

    # --- the caller's thread ---------------------------------------------------------------

    def take(self, limit: int) -> list[Delivery]:
        """At most `limit` deliveries that wait here."""
        self._resume()
        return self.tray.take(limit)

    def waiting(self) -> bool:
        """Whether `take` would return something; silences the bell."""
        self._resume()
        return self.tray.asked()

    def answer(self, delivery: Delivery, how: str) -> None:
        """`ack`, `nack` (dead-letter it) or `requeue`; dropped when the channel it came by is gone."""
        self.tray.answered(delivery)
        self.loop.call(lambda: self._answer(delivery.tag, how))

    def _resume(self) -> None:
        """Who asks has a free slot again."""
        if self.paused:
            self.paused = False
            self.loop.call(self._consume_again)

    # --- the loop's thread -----------------------------------------------------------------

    @property
    def hungry(self) -> bool:
        """Whether the broker may bring more."""
        return bool(self._prefetch) and not self.paused and self._unanswered < self._prefetch

    def want(self, name: str, prefetch: int) -> None:
        """Consume the queue `name` from now on; a prefetch of 0 stops it and gives back what was not taken."""
        self.name, self._prefetch = name, prefetch
        if not prefetch:
            self._dismiss()
            return
        self.link.start()
        if self.link.up and self._channel is None:
            self.opened(self.link.connection)

    def pause(self) -> None:
        """Have nothing brought, and give back what waits, until the next `take` or `waiting`."""
        self.paused = True
        self._dismiss()

    def opened(self, connection: Any) -> None:
        """A connection is there: declare, open a channel, consume."""
        if not self._prefetch:
            return

        def declared(error: BrokerError | None) -> None:
            if error is not None:
                log.error("%s", error)  # consuming what exists is better than nothing
            if connection is self.link.connection and self.link.up and self._prefetch:
                connection.channel(on_open_callback=self._channel_opened)

        self._declare(connection, declared)

    def lost(self, _error: BrokerError | None = None) -> None:
        """Channel or connection are gone: what was not taken comes again, what was taken goes on."""
        self.tray.forget(self._generation)
        self._generation += 1
        self._channel, self._consumer, self._unanswered = None, "", 0

    def close(self) -> None:
        """Close the bell; the link closes the channel."""
        self.closed, self._prefetch = True, 0
        self.tray.close()

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
        for delivery in self.tray.clear():
            self._answer(delivery.tag, "requeue")

    def _channel_closed(self, channel: Any, reason: BaseException) -> None:
        if channel is not self._channel:
            return
        self.lost()
        link = self.link
        if not link.up or not isinstance(reason, exceptions.ChannelClosedByBroker):
            return  # the connection goes with it, and `lost` was or will be called
        log.warning("RabbitMQ closed the consumer's channel and it is opened again: %s", reason.reply_text)
        connection, delay = link.connection, min(0.1 * 2.0**self._failures, 5.0) if self._failures else 0.0
        self._failures += 1

        def open_again() -> None:
            if connection is link.connection and link.up:
                self.opened(connection)

        self.loop.later(delay, open_again)

    def _cancelled(self, _frame: Any) -> None:
        """The queue was deleted or moved. RabbitMQ 4.3 keeps such a consumer half alive: connect anew."""
        self.link.drop(BrokerUnavailable(f"RabbitMQ ended the consumer of {self.name}: the queue was deleted."))

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        if channel is not self._channel:
            return
        self._unanswered += 1
        self.brought += 1
        arrived = read(body, properties, self.name)
        ticket = Ticket(self._generation, method.delivery_tag, first_failure=arrived.first_failure)
        message = arrived.message
        if message is None:
            log.error("A message cannot be read and is parked in the failed queue: %s", arrived.problem)

            def done(parked: bool) -> None:
                # A nack needs no publishing: it comes again after CRON_RETRY_DELAY_MS, when that may work.
                self._answer(ticket, "ack" if parked else "nack")

            self._unreadable(body, properties, arrived.problem, done)
            return
        if message.execution_id is not None:
            ticket.identity = (message.execution_id, message.attempt)
        if not self.tray.put(Delivery(message, ticket, arrived.message_id, arrived.earlier)):
            # Its channel died while it runs here: the row and its lease carry the run from now on.
            self._answer(ticket, "ack")

    def _answer(self, ticket: Ticket, how: str) -> None:
        if ticket.generation != self._generation or self._channel is None or not self._channel.is_open:
            return
        self._unanswered -= 1
        if how == "ack":
            self._channel.basic_ack(ticket.tag)
        elif how == "nack":
            self._channel.basic_nack(ticket.tag, requeue=False)
        else:
            # Reject, not nack: RabbitMQ 4.3 counts only rejected deliveries against the limit.
            self._channel.basic_reject(ticket.tag, requeue=True)
