"""Publishes batches of messages and waits, within a time limit, until the broker has confirmed them.

If no queue receives a message, the broker returns the message. The publisher then declares the queues and sends the
message once more.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable
from scheduling.broker.rabbitmq.connection import ReconnectingConnection
from scheduling.broker.rabbitmq.declaration import Declared
from scheduling.broker.rabbitmq.io_thread import IoThread, refuse, resolve
from scheduling.broker.rabbitmq.messages import Outgoing
from scheduling.broker.rabbitmq.outage import Outage
from scheduling.core.broker_alarm import Alarm
from scheduling.logs import get_logger

log = get_logger(__name__)

WINDOW = 1000
"""How many messages may be unconfirmed at once. In measurements, a larger number was not faster."""

CONFIRM_POLL_SECONDS = 0.25


@dataclass(eq=False)
class Batch:
    """The messages of one call of `submit`. The batch is complete when every message is confirmed or refused."""

    answer: Future[set[int]]
    open: int
    confirmed: set[int] = field(default_factory=set)
    returned: list[Outgoing] = field(default_factory=list)
    moved_at: float = field(default_factory=time.monotonic)
    """The last time (monotonic) that the broker confirmed or refused a message of this batch."""
    rounds: int = 0
    resends: int = 0


class Publisher:
    """Publishes over one connection. Every method except `__init__` runs in the loop's thread.

    Args:
        declare: declares the topology, then calls the given function with the result.
        outage: is told when the broker stops to confirm messages, and when it confirms messages again.
        patience: seconds. If a batch makes no progress for this long, the publisher gives up the batch.
    """

    reconnecting: ReconnectingConnection

    def __init__(
        self, loop: IoThread, declare: Callable[[Callable[[Declared], None]], None], outage: Outage, patience: float
    ) -> None:
        self.loop, self._declare, self._outage, self._patience = loop, declare, outage, patience
        self.blocked, self._blocked_at = "", 0.0
        """The reason why the broker accepts no messages now (an alarm); empty if the broker accepts messages."""
        self._channel: Any = None
        self._batches: list[Batch] = []
        self._waiting: deque[tuple[Batch, Outgoing]] = deque()
        self._sent: dict[int, tuple[Batch, Outgoing]] = {}
        self._returned: set[tuple[str, str]] = set()
        self._tag = 0
        self._timer: Any = None

    def submit(self, messages: Sequence[Outgoing], answer: Future[set[int]]) -> None:
        """Publish messages. `answer` gets the set of idents that the broker confirmed.

        If the publisher gives up the batch before any confirm, `answer` gets an error instead.
        """
        batch = Batch(answer, len(messages))
        self._batches.append(batch)
        self._waiting.extend((batch, message) for message in messages)
        self.reconnecting.start()
        if self.reconnecting.error is not None:
            self._give_up(batch, self.reconnecting.error)
        elif self.blocked:
            self._give_up(batch, BrokerUnavailable(self.blocked))
        else:
            self._pump()
        if self._timer is None and self._batches:
            self._timer = self.loop.later(CONFIRM_POLL_SECONDS, self._look)

    def opened(self, connection: Any) -> None:
        """Open a channel on a new connection."""
        self.blocked = ""
        connection.add_on_connection_blocked_callback(self._alarm)
        connection.add_on_connection_unblocked_callback(self._all_clear)
        connection.channel(on_open_callback=self._channel_opened)

    def lost(self, error: BrokerError) -> None:
        """Keep the unconfirmed messages for the next connection. If a reconnect has failed, give up all batches."""
        self._channel = None
        self.blocked = ""
        self._send_again(error if self.reconnecting.error is not None else None, error)

    def _send_again(self, final: BrokerError | None, error: BrokerError) -> None:
        sent, self._sent = self._sent, {}
        self._returned.clear()
        # An unconfirmed message may have arrived already. A copy does no harm, but a lost message does.
        self._waiting.extendleft(reversed(sent.values()))
        for batch in {id(batch): batch for batch, _ in sent.values()}.values():
            batch.resends += 1
            if batch.resends > 2 and final is None:
                self._give_up(batch, error)
        if final is not None:
            for batch in list(self._batches):
                self._give_up(batch, final)

    def _channel_opened(self, channel: Any) -> None:
        channel.add_on_close_callback(self._channel_closed)
        channel.add_on_return_callback(self._on_return)
        # The channel's tags count from 1 as soon as confirms are switched on.
        channel.confirm_delivery(self._on_confirm, callback=lambda _frame: self._confirming(channel))

    def _confirming(self, channel: Any) -> None:
        self._channel, self._tag = channel, 0
        self._pump()

    def _channel_closed(self, channel: Any, reason: BaseException) -> None:
        if channel is not self._channel:
            return
        self._channel = None
        reconnecting = self.reconnecting
        if not reconnecting.up:
            return  # the connection is lost too, so `lost` is called next
        if not isinstance(reason, exceptions.ChannelClosedByBroker):
            return
        error = BrokerUnavailable(f"RabbitMQ closed the channel: {reason.reply_code} {reason.reply_text}")
        log.warning("%s", error)
        self._send_again(None, error)
        connection = reconnecting.connection

        def declared(_declared: Declared) -> None:
            if connection is reconnecting.connection and reconnecting.up:
                connection.channel(on_open_callback=self._channel_opened)

        self._declare(declared)  # the usual cause is a missing exchange

    def _pump(self) -> None:
        channel = self._channel
        if channel is None or not channel.is_open:
            return
        while self._waiting and len(self._sent) < WINDOW:
            batch, message = self._waiting.popleft()
            if batch.answer.done():
                continue
            try:
                # Without `mandatory`, the broker would confirm an unroutable message and then drop it.
                channel.basic_publish(message.exchange, message.key, message.body, message.properties, mandatory=True)
            except (exceptions.AMQPError, ValueError, TypeError) as error:
                if not channel.is_open:
                    self._waiting.appendleft((batch, message))
                    return
                log.error("A message cannot be encoded and is not published: %r", error, extra={"id": message.ident})
                self._done(batch)
                continue
            self._tag += 1
            self._sent[self._tag] = (batch, message)

    def _on_return(self, _channel: Any, method: Any, properties: Any, _body: bytes) -> None:
        # The broker first returns an unroutable message and then confirms it.
        self._returned.add((method.routing_key, properties.message_id))

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        positive = method.NAME == "Basic.Ack"
        tags = [method.delivery_tag]
        if method.multiple:  # the keys of `_sent` are in ascending order
            tags = list(takewhile(lambda tag: tag <= method.delivery_tag, self._sent))
        now = time.monotonic()
        for tag in tags:
            batch, message = self._sent.pop(tag, (None, None))
            if batch is None or message is None or batch.answer.done():
                continue
            batch.moved_at = now
            if self._returned and (mark := (message.key, message.properties.message_id)) in self._returned:
                self._returned.discard(mark)
                batch.returned.append(message)
            elif positive:  # a negative answer means that the queue is full or has no leader
                self._outage.ends("confirms")
                batch.confirmed.add(message.ident)
            self._done(batch)
        self._pump()

    def _done(self, batch: Batch) -> None:
        batch.open -= 1
        if batch.open:
            return
        if batch.returned and not batch.rounds:
            # A queue is missing. Declare the queues, then send the returned messages once more.
            batch.rounds += 1
            messages, batch.returned = batch.returned, []
            batch.open = len(messages)

            def declared(declared: Declared) -> None:
                if declared.lost is not None:
                    self._give_up(batch, declared.lost)
                    return
                if not declared.errors:
                    log.warning("A queue was missing and is declared again")
                self._waiting.extend((batch, message) for message in messages)
                self._pump()

            self._declare(declared)
            return
        self._batches.remove(batch)
        resolve(batch.answer, batch.confirmed)

    def _give_up(self, batch: Batch, error: BrokerError) -> None:
        if batch in self._batches:
            self._batches.remove(batch)
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not batch)
        if batch.confirmed:
            resolve(batch.answer, batch.confirmed)
        else:
            refuse(batch.answer, error)

    def _look(self) -> None:
        """Give up batches that make no progress. Drop a connection on which the broker confirms nothing."""
        self._timer = None
        now = time.monotonic()
        stalled = [batch for batch in self._batches if now - batch.moved_at > self._patience]
        if stalled:
            error = BrokerUnavailable(
                self.blocked or f"RabbitMQ has confirmed nothing for {self._patience:.0f} s; it is asked again later."
            )
            on_their_way = any(batch is sent for batch in stalled for sent, _ in self._sent.values())
            for batch in stalled:
                self._give_up(batch, error)
            # If there is still no channel, the broker never answered the request for a channel.
            if not self.blocked and self.reconnecting.up and (on_their_way or self._channel is None):
                # A new connection does not end this outage, because the queue itself may be silent.
                self._outage.begins("confirms", error)
                self.reconnecting.drop(error)
        if self._batches:
            self._timer = self.loop.later(CONFIRM_POLL_SECONDS, self._look)

    @property
    def alarm(self) -> Alarm | None:
        """The present alarm of the broker."""
        return Alarm(self.blocked, time.monotonic() - self._blocked_at) if self.blocked else None

    def _alarm(self, _connection: Any, frame: Any) -> None:
        self._blocked_at = time.monotonic()
        self.blocked = f"RabbitMQ takes no messages: {frame.method.reason} (an alarm of its memory or disk)."
        log.warning("%s Consumers go on; what is due is published when it is over.", self.blocked)
        for batch in list(self._batches):
            self._give_up(batch, BrokerUnavailable(self.blocked))

    def _all_clear(self, _connection: Any, _frame: Any) -> None:
        if self.blocked:
            self.blocked = ""
            log.info("RabbitMQ takes messages again")
