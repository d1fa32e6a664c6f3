"""Publisher: confirmed and mandatory publishing, many at once, never without a time limit."""

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
from scheduling.broker.rabbitmq.envelope import Letter
from scheduling.broker.rabbitmq.link import Link
from scheduling.broker.rabbitmq.loop import Loop, refuse, resolve
from scheduling.logs import get_logger

log = get_logger(__name__)

WINDOW = 1000
"""Letters on their way without a confirm; measured, more brings nothing."""

LOOK_SECONDS = 0.25


@dataclass(eq=False)
class Batch:
    """Letters of one call. Complete when each is confirmed, refused or given up."""

    answer: Future[set[int]]
    open: int
    confirmed: set[int] = field(default_factory=set)
    returned: list[Letter] = field(default_factory=list)
    moved_at: float = field(default_factory=time.monotonic)
    """When the broker last confirmed anything of it."""
    rounds: int = 0
    resends: int = 0


class Publisher:
    """Publishes over one link. Everything but `__init__` happens in the loop's thread.

    Args:
        declare: declares the topology, then calls back with the error or None.
        patience: seconds without any progress after which a batch is given up.
    """

    link: Link

    def __init__(
        self, loop: Loop, declare: Callable[[Callable[[BrokerError | None], None]], None], patience: float
    ) -> None:
        self.loop, self._declare, self._patience = loop, declare, patience
        self.blocked = ""
        """Why the broker takes no messages at present (an alarm), else empty."""
        self._channel: Any = None
        self._batches: list[Batch] = []
        self._waiting: deque[tuple[Batch, Letter]] = deque()
        self._sent: dict[int, tuple[Batch, Letter]] = {}
        self._returned: set[tuple[str, str]] = set()
        self._tag = 0
        self._timer: Any = None

    def submit(self, letters: Sequence[Letter], answer: Future[set[int]]) -> None:
        """Publish letters; the answer is the set of idents that the broker confirmed.

        It is a BrokerUnavailable when nothing was confirmed.
        """
        batch = Batch(answer, len(letters))
        self._batches.append(batch)
        self._waiting.extend((batch, letter) for letter in letters)
        self.link.start()
        if self.link.error is not None:
            self._give_up(batch, self.link.error)
        elif self.blocked:
            self._give_up(batch, BrokerUnavailable(self.blocked))
        else:
            self._pump()
        if self._timer is None and self._batches:
            self._timer = self.loop.later(LOOK_SECONDS, self._look)

    def opened(self, connection: Any) -> None:
        """A connection is there: open the channel."""
        self.blocked = ""
        connection.add_on_connection_blocked_callback(self._alarm)
        connection.add_on_connection_unblocked_callback(self._all_clear)
        connection.channel(on_open_callback=self._channel_opened)

    def lost(self, error: BrokerError) -> None:
        """The connection is gone: send again once it is back, unless it does not come back at once."""
        self._channel = None
        self.blocked = ""
        self._send_again(error if self.link.error is not None else None, error)

    def _send_again(self, final: BrokerError | None, error: BrokerError) -> None:
        sent, self._sent = self._sent, {}
        self._returned.clear()
        # Those on their way may have arrived: a second copy is harmless, a lost one is not.
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
        # pika counts tags of a channel from 1 as soon as confirms are selected.
        channel.confirm_delivery(self._on_confirm, callback=lambda _frame: self._confirming(channel))

    def _confirming(self, channel: Any) -> None:
        self._channel, self._tag = channel, 0
        self._pump()

    def _channel_closed(self, channel: Any, reason: BaseException) -> None:
        if channel is not self._channel:
            return
        self._channel = None
        link = self.link
        if not link.up:
            return  # the connection goes with it, and `lost` follows
        if not isinstance(reason, exceptions.ChannelClosedByBroker):
            return
        error = BrokerUnavailable(f"RabbitMQ closed the channel: {reason.reply_code} {reason.reply_text}")
        log.warning("%s", error)
        self._send_again(None, error)
        connection = link.connection

        def declared(_error: BrokerError | None) -> None:
            if connection is link.connection and link.up:
                connection.channel(on_open_callback=self._channel_opened)

        self._declare(declared)  # a missing exchange is the usual cause

    def _pump(self) -> None:
        channel = self._channel
        if channel is None or not channel.is_open:
            return
        while self._waiting and len(self._sent) < WINDOW:
            batch, letter = self._waiting.popleft()
            if batch.answer.done():
                continue
            try:
                # Mandatory: without it an unroutable message is confirmed, and gone.
                channel.basic_publish(letter.exchange, letter.key, letter.body, letter.properties, mandatory=True)
            except (exceptions.AMQPError, ValueError, TypeError) as error:
                if not channel.is_open:
                    self._waiting.appendleft((batch, letter))
                    return
                log.error("A message cannot be encoded and is not published: %r", error, extra={"id": letter.ident})
                self._done(batch)
                continue
            self._tag += 1
            self._sent[self._tag] = (batch, letter)

    def _on_return(self, _channel: Any, method: Any, properties: Any, _body: bytes) -> None:
        # A return comes before the confirm of the same message.
        self._returned.add((method.routing_key, properties.message_id))

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        positive = method.NAME == "Basic.Ack"
        tags = [method.delivery_tag]
        if method.multiple:  # they were put in by rising tags
            tags = list(takewhile(lambda tag: tag <= method.delivery_tag, self._sent))
        now = time.monotonic()
        for tag in tags:
            batch, letter = self._sent.pop(tag, (None, None))
            if batch is None or letter is None or batch.answer.done():
                continue
            batch.moved_at = now
            if self._returned and (mark := (letter.key, letter.properties.message_id)) in self._returned:
                self._returned.discard(mark)
                batch.returned.append(letter)
            elif positive:  # else the queue is full or its leader is gone: not confirmed
                batch.confirmed.add(letter.ident)
            self._done(batch)
        self._pump()

    def _done(self, batch: Batch) -> None:
        batch.open -= 1
        if batch.open:
            return
        if batch.returned and not batch.rounds:
            # A queue is gone: declare, and send those once more.
            batch.rounds += 1
            letters, batch.returned = batch.returned, []
            batch.open = len(letters)

            def declared(error: BrokerError | None) -> None:
                if error is not None:
                    self._give_up(batch, error)
                    return
                self._waiting.extend((batch, letter) for letter in letters)
                self._pump()

            log.warning("A queue was missing and is declared")
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
        """Batches that nothing moves any more are given up; a connection that confirms nothing is dropped."""
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
            # Without a channel by now, its opening was lost on the way.
            if not self.blocked and self.link.up and (on_their_way or self._channel is None):
                self.link.drop(error)
        if self._batches:
            self._timer = self.loop.later(LOOK_SECONDS, self._look)

    def _alarm(self, _connection: Any, frame: Any) -> None:
        self.blocked = f"RabbitMQ takes no messages: {frame.method.reason} (an alarm of its memory or disk)."
        log.warning("%s Consumers go on; what is due is published when it is over.", self.blocked)
        for batch in list(self._batches):
            self._give_up(batch, BrokerUnavailable(self.blocked))

    def _all_clear(self, _connection: Any, _frame: Any) -> None:
        if self.blocked:
            self.blocked = ""
            log.info("RabbitMQ takes messages again")
