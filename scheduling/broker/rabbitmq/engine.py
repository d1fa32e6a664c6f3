"""Engine: the broker thread with its two connections, and what happens when they come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from django.utils import timezone as clock

from scheduling.broker.base import BrokerError, BrokerUnavailable
from scheduling.broker.rabbitmq.address import Address
from scheduling.broker.rabbitmq.declaration import Declaration
from scheduling.broker.rabbitmq.envelope import Letter, unreadable_letter
from scheduling.broker.rabbitmq.link import Link
from scheduling.broker.rabbitmq.loop import Loop, refuse, resolve
from scheduling.broker.rabbitmq.outage import Outage
from scheduling.broker.rabbitmq.publisher import Publisher
from scheduling.broker.rabbitmq.subscription import Subscription
from scheduling.broker.rabbitmq.watchdog import Watchdog
from scheduling.broker.topology import Queue, Topology
from scheduling.logs import get_logger

log = get_logger(__name__)

Told = Callable[[BrokerError | None, dict[str, int]], None]
"""Called when a declaration is over, with the error or with the ready messages of its queues."""


class Engine:
    """Publishes on one connection and consumes on another: an alarm of the broker stops the one that
    publishes, never the acknowledgements. Either is made when it is first needed.

    Args:
        queues: what to declare after each reconnect, at that moment; nothing until it was declared once.
        patience: seconds the broker may take to answer or to confirm.
    """

    def __init__(
        self, address: Address, topology: Topology, queues: Callable[[], Sequence[Queue]], patience: float
    ) -> None:
        self.topology, self.patience = topology, patience
        self._queues = queues
        self.loop = Loop("rabbitmq")
        outage = Outage(address)
        self.publisher = Publisher(self.loop, self._declare_again, patience)
        self.subscription = Subscription(self.loop, self._park, self._declare_on)
        self._publishing = Link(
            self.loop, address, "publish", outage, self._publisher_up, self._publisher_down, patience
        )
        self._consuming = Link(
            self.loop, address, "consume", outage, self.subscription.opened, self.subscription.lost, patience
        )
        self.publisher.link, self.subscription.link = self._publishing, self._consuming
        self.loop.call(lambda: Watchdog(self.subscription))
        self._asked: list[tuple[Sequence[Queue], Told]] = []

    # --- the caller's thread ---------------------------------------------------------------

    @property
    def product(self) -> str:
        """What the broker calls itself; empty before the first connection."""
        return self._publishing.product or self._consuming.product

    def send(self, letters: Sequence[Letter]) -> set[int]:
        """Publish; the idents that were confirmed.

        Raises:
            BrokerUnavailable: none was, as far as is known.
        """
        if not letters:
            return set()
        # The publisher keeps the time; this limit only holds if its thread is dead.
        limit = self.patience * 6 + len(letters) / 500
        return self.loop.ask(partial(self.publisher.submit, letters), limit, "publishing")

    def declare(self, queues: Sequence[Queue]) -> dict[str, int]:
        """Declare queues; their ready messages.

        Raises:
            BrokerUnavailable, TopologyMismatch
        """

        def question(answer: Future[dict[str, int]]) -> None:
            def told(error: BrokerError | None, ready: dict[str, int]) -> None:
                if error is not None:
                    refuse(answer, error)
                else:
                    resolve(answer, ready)

            self._publishing.start()
            if self._publishing.error is not None:
                told(self._publishing.error, {})
            elif self.publisher.blocked:  # nothing on this connection is read, so nothing would be answered
                told(BrokerUnavailable(self.publisher.blocked), {})
            else:
                self._asked.append((queues, told))
                self._declare_asked()

        return self.loop.ask(question, self.patience * 3, "declaring queues")

    def declare_soon(self, queues: Sequence[Queue]) -> None:
        """Declare queues in the background; a failure is logged and mended by whoever needs them."""

        def told(error: BrokerError | None, _ready: dict[str, int]) -> None:
            if error is not None:
                log.warning("%s", error)

        def ask() -> None:
            self._asked.append((queues, told))
            self._declare_asked()

        self.loop.call(ask)

    def close(self) -> None:
        """Disconnect; RabbitMQ gives unanswered messages to others at once."""
        links = (self._publishing, self._consuming)

        def question(answer: Future[None]) -> None:
            for link in links:
                link.close()
            wait(answer)

        def wait(answer: Future[None]) -> None:
            if any(link.connection is not None for link in links):
                self.loop.later(0.01, lambda: wait(answer))
            else:
                resolve(answer, None)

        with suppress(BrokerUnavailable):  # it does not say farewell; the sockets close with the thread
            self.loop.ask(question, self.patience, "closing")
        self.loop.stop()
        self.subscription.close()

    # --- the loop's thread -----------------------------------------------------------------

    def _publisher_up(self, connection: Any) -> None:
        def declared(error: BrokerError | None, _ready: dict[str, int]) -> None:
            if error is not None:
                log.error("%s", error)  # what exists can be published to all the same
            if connection is self._publishing.connection and self._publishing.up:
                self.publisher.opened(connection)
                self._declare_asked()

        queues = () if self._asked else self._queues()
        if queues:
            # Before anything is published: a fresh quorum queue is safe only after some moments.
            Declaration(self.loop, connection, self.topology, queues, declared, self.patience)
        else:
            declared(None, {})

    def _publisher_down(self, error: BrokerUnavailable) -> None:
        self.publisher.lost(error)
        if self._publishing.error is not None:
            asked, self._asked = self._asked, []
            for _, told in asked:
                told(error, {})

    def _declare_asked(self) -> None:
        if not self._publishing.up:
            return
        asked, self._asked = self._asked, []
        for queues, told in asked:
            Declaration(self.loop, self._publishing.connection, self.topology, queues, told, self.patience)

    def _declare_again(self, done: Callable[[BrokerError | None], None]) -> None:
        """A publish met a queue or the exchange that is gone."""
        if not self._publishing.up:
            done(self._publishing.error or BrokerUnavailable("The connection was lost."))
            return
        queues = self._queues() or self.topology.base()
        connection = self._publishing.connection
        Declaration(self.loop, connection, self.topology, queues, lambda error, _: done(error), self.patience)

    def _declare_on(self, connection: Any, done: Callable[[BrokerError | None], None]) -> None:
        queues = self._queues() or self.topology.base()
        Declaration(self.loop, connection, self.topology, queues, lambda error, _: done(error), self.patience)

    def _park(self, body: bytes, properties: Any, problem: str, done: Callable[[bool], None]) -> None:
        """A message that cannot be read goes to the failed queue, bytes unchanged."""
        answer: Future[set[int]] = Future()
        # Called in this thread again: the publisher answers here.
        answer.add_done_callback(lambda future: done(future.exception() is None and bool(future.result())))
        self.publisher.submit([unreadable_letter(body, properties, self.topology, problem, clock.now())], answer)
