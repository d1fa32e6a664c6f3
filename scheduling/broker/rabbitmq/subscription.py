"""Subscription: what the broker brings for one work queue, kept until it is taken and answered."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable, Delivery
from scheduling.broker.rabbitmq.envelope import read
from scheduling.broker.rabbitmq.link import Link
from scheduling.broker.rabbitmq.loop import Loop
from scheduling.logs import get_logger

log = get_logger(__name__)

WATCH_SECONDS = 5.0
"""How often a consumer that gets nothing is doubted."""


@dataclass(eq=False)
class Ticket:
    """What is needed to answer a delivery. Its tag dies with the channel: `generation` tells."""

    generation: int
    tag: int
    queue: str
    identity: tuple[int, int] | None
    first_failure: str = ""


class Subscription:
    """Consumes one queue over one link, again and again, whatever happens to channel, queue or broker.

    `take`, `give_back` and `answer` are called from the caller's thread; the rest happens in the loop's.

    Args:
        unreadable: gets (body, properties, problem, done); calls `done(parked)` in the loop's thread.
        declare: declares the topology over the given connection, then calls back.
    """

    def __init__(
        self,
        loop: Loop,
        unreadable: Callable[[bytes, Any, str, Callable[[bool], None]], None],
        declare: Callable[[Any, Callable[[BrokerError | None], None]], None],
    ) -> None:
        self.loop, self._unreadable, self._declare = loop, unreadable, declare
        self.link: Link | None = None
        self.bell, self._ringer = socket.socketpair()
        self.bell.setblocking(False)
        self._ringer.setblocking(False)
        self._lock = threading.Lock()
        self._arrived: deque[Delivery] = deque()
        self._held: set[tuple[int, int]] = set()
        self._queue = self._name = ""
        self._prefetch = 0
        self._generation = 0
        self._channel: Any = None
        self._consumer = ""
        self._unanswered = self._brought = self._failures = 0
        self._rung = self._watching = False
        self._doubted: int | None = None

    # --- the caller's thread ---------------------------------------------------------------

    def take(self, limit: int) -> list[Delivery]:
        """At most `limit` deliveries that wait here."""
        with self._lock:
            self._silence()
            taken = [self._arrived.popleft() for _ in range(min(limit, len(self._arrived)))]
            self._held.update(delivery.tag.identity for delivery in taken if delivery.tag.identity is not None)
        return taken

    def waiting(self) -> bool:
        """Whether `take` would return something; the bell is silenced."""
        with self._lock:
            self._silence()
            return bool(self._arrived)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Taken, but not started: they wait here again, first in line."""
        with self._lock:
            for delivery in reversed(deliveries):
                self._held.discard(delivery.tag.identity)
                self._arrived.appendleft(delivery)

    def answer(self, delivery: Delivery, how: str) -> None:
        """`ack`, `nack` (dead-letter it) or `requeue`; dropped when the channel it came by is gone."""
        with self._lock:
            self._held.discard(delivery.tag.identity)
        self.loop.call(lambda: self._answer(delivery.tag, how))

    def _silence(self) -> None:
        if self._rung:
            self._rung = False
            with suppress(BlockingIOError):
                self.bell.recv(64)

    def _ring(self) -> None:
        if not self._rung:
            self._rung = True
            with suppress(BlockingIOError, OSError):
                self._ringer.send(b"x")

    # --- the loop's thread -----------------------------------------------------------------

    def want(self, queue: str, name: str, prefetch: int) -> None:
        """Consume `name` from now on; a prefetch of 0 stops it and gives back what was not taken."""
        assert self.link is not None  # noqa: S101 - set by whoever made both
        self._queue, self._name, self._prefetch = queue, name, prefetch
        if prefetch:
            self.link.start()
            if self.link.up and self._channel is None:
                self.opened(self.link.connection)
            if not self._watching:
                self._watching = True
                self.loop.later(WATCH_SECONDS, self._watch)
            return
        if self._channel is not None and self._channel.is_open and self._consumer:
            self._channel.basic_cancel(self._consumer, callback=lambda _frame: self._return_waiting())
            self._consumer = ""

    def opened(self, connection: Any) -> None:
        """A connection is there: declare, open a channel, consume."""
        if not self._prefetch:
            return
        link = self.link

        def declared(error: BrokerError | None) -> None:
            if error is not None:
                log.error("%s", error)  # consuming what exists is better than nothing
            if link is not None and connection is link.connection and link.up and self._prefetch:
                connection.channel(on_open_callback=self._channel_opened)

        self._declare(connection, declared)

    def lost(self, _error: BrokerError | None = None) -> None:
        """Channel or connection are gone: what was not taken comes again, what was taken goes on."""
        with self._lock:
            self._generation += 1
            self._channel, self._consumer, self._unanswered = None, "", 0
            # Given back after an earlier loss: nobody will bring those again.
            self._arrived = deque(each for each in self._arrived if each.tag.generation < self._generation - 1)

    def close(self) -> None:
        """Close the bell; the link closes the channel."""
        self._prefetch = 0
        self.bell.close()
        self._ringer.close()

    def _channel_opened(self, channel: Any) -> None:
        with self._lock:
            self._generation += 1
        self._channel, self._unanswered = channel, 0
        channel.add_on_close_callback(self._channel_closed)
        channel.add_on_cancel_callback(self._cancelled)
        channel.basic_qos(prefetch_count=self._prefetch, callback=lambda _frame: self._consume(channel))

    def _consume(self, channel: Any) -> None:
        def consuming(_frame: Any) -> None:
            self._failures = 0

        if channel is self._channel and channel.is_open:
            self._consumer = channel.basic_consume(self._name, self._on_message, callback=consuming)

    def _channel_closed(self, channel: Any, reason: BaseException) -> None:
        if channel is not self._channel:
            return
        self.lost()
        link = self.link
        if link is None or not link.up or not isinstance(reason, exceptions.ChannelClosedByBroker):
            return
        log.warning("RabbitMQ closed the consumer's channel and it is opened again: %s", reason.reply_text)
        connection, delay = link.connection, min(0.1 * 2.0**self._failures, 5.0) if self._failures else 0.0
        self._failures += 1

        def open_again() -> None:
            if connection is link.connection and link.up:
                self.opened(connection)

        self.loop.later(delay, open_again)

    def _cancelled(self, _frame: Any) -> None:
        """The queue was deleted or moved. RabbitMQ 4.3 keeps such a consumer half alive: connect anew."""
        if self.link is not None:
            self.link.drop(BrokerUnavailable(f"RabbitMQ ended the consumer of {self._name}: the queue was deleted."))

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        if channel is not self._channel:
            return
        self._unanswered += 1
        self._brought += 1
        arrived = read(body, properties, self._name)
        ticket = Ticket(self._generation, method.delivery_tag, self._queue, None, arrived.first_failure)
        message = arrived.message
        if message is None:
            log.error("A message cannot be read and is parked in the failed queue: %s", arrived.problem)
            # A nack needs no publishing: it comes again after CRON_RETRY_DELAY_MS, when that may work.
            done: Callable[[bool], None] = lambda parked: self._answer(ticket, "ack" if parked else "nack")  # noqa: E731
            self._unreadable(body, properties, arrived.problem, done)
            return
        if message.execution_id is not None:
            ticket.identity = (message.execution_id, message.attempt)
        with self._lock:
            held = ticket.identity is not None and ticket.identity in self._held
            if not held:
                self._arrived.append(Delivery(message, ticket, arrived.message_id, arrived.earlier))
                self._ring()
        if held:
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

    def _return_waiting(self) -> None:
        with self._lock:
            waiting, self._arrived = list(self._arrived), deque()
        for delivery in waiting:
            self._answer(delivery.tag, "requeue")

    def _watch(self) -> None:
        """A consumer may look alive and get nothing: compare with the queue, and start anew if it is so."""
        if not self._prefetch or self.link is None:
            self._watching = False
            return
        self.loop.later(WATCH_SECONDS, self._watch)
        link, brought = self.link, self._brought
        connection = link.connection
        if not link.up or self._unanswered >= self._prefetch:
            self._doubted = None
            return
        answered: list[bool] = []

        def asked(channel: Any) -> None:
            channel.queue_declare(self._name, passive=True, callback=lambda frame: counted(channel, frame))
            # A missing queue closes this channel: the consumer's own cancel mends that.
            channel.add_on_close_callback(lambda _channel, _reason: answered.append(True))

        def counted(channel: Any, frame: Any) -> None:
            answered.append(True)
            channel.close()
            if frame.method.message_count == 0 or self._unanswered >= self._prefetch or brought != self._brought:
                self._doubted = None
            elif self._doubted == brought and connection is link.connection:
                self._doubted = None
                link.drop(BrokerUnavailable(f"{self._name} holds messages and brings none; the consumer starts anew."))
            else:
                self._doubted = brought

        def judge() -> None:
            if not answered and connection is link.connection:
                link.drop(BrokerUnavailable("RabbitMQ does not answer the consumer; it connects anew."))

        connection.channel(on_open_callback=asked)
        self.loop.later(WATCH_SECONDS - 0.5, judge)
