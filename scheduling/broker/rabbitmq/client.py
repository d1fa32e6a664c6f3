"""Runs the two connections to RabbitMQ in the broker thread, and reacts when a connection opens or is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from django.utils import timezone as clock

from scheduling.broker.base import BrokerError, BrokerUnavailable
from scheduling.broker.rabbitmq.address import Address
from scheduling.broker.rabbitmq.addresses import Addresses
from scheduling.broker.rabbitmq.beats import Beats
from scheduling.broker.rabbitmq.connection import ReconnectingConnection
from scheduling.broker.rabbitmq.declaration import Declaration, Declared
from scheduling.broker.rabbitmq.io_thread import IoThread, refuse, resolve
from scheduling.broker.rabbitmq.messages import Outgoing, outgoing_unreadable
from scheduling.broker.rabbitmq.outage import Outage
from scheduling.broker.rabbitmq.publisher import Publisher
from scheduling.broker.rabbitmq.queue import Queue
from scheduling.broker.rabbitmq.queue_declaration import Held, QueueDeclaration
from scheduling.broker.rabbitmq.queue_states import QueueStates
from scheduling.broker.rabbitmq.subscription import Subscription
from scheduling.broker.rabbitmq.topology import Topology
from scheduling.broker.rabbitmq.watchdog import Watchdog

AGAIN_SECONDS = 5.0
"""The pause, in seconds, before queues that cannot be used are declared again."""

Told = Callable[[Declared], None]
"""A callback for the end of a declaration."""


class Client:
    """Publishes on one connection and consumes on another.

    During a memory or disk alarm, the broker stops reading from connections that publish. Acknowledgements must
    continue, so they use the connection that consumes. Each connection is opened when it is first needed.

    Args:
        queues: returns the queues to declare on a new connection; returns no queues before the first `declare`.
        patience: the longest time in seconds to wait for an answer or a confirm.
    """

    def __init__(
        self, addresses: Addresses, topology: Topology, queues: Callable[[], Sequence[Queue]], patience: float
    ) -> None:
        self.topology, self.patience = topology, patience
        self._queues = queues
        self.loop = IoThread("rabbitmq")
        outage = Outage(addresses)
        self._states = QueueStates(outage)
        self.publisher = Publisher(self.loop, self._declare_again, outage, patience)
        self.subscription = Subscription(self.loop, self._park, self._declare_on)
        self._publishing = ReconnectingConnection(
            self.loop, addresses, "publish", outage, self._publisher_up, self._publisher_down, patience
        )
        self._consuming = ReconnectingConnection(
            self.loop, addresses, "consume", outage, self.subscription.opened, self.subscription.lost, patience
        )
        self.publisher.reconnecting, self.subscription.reconnecting = self._publishing, self._consuming
        self.beats = Beats(self.loop, topology, self._publishing, self.publisher)
        self.loop.call(lambda: Watchdog(self.subscription))
        self._asked: list[tuple[Sequence[Queue], Told]] = []
        self._later: Any = None
        self._closed = False
        self.addresses = len(addresses)
        """The number of addresses."""

    # --- the caller's thread ---------------------------------------------------------------

    @property
    def product(self) -> str:
        """Name and version of the broker; empty before the first connection."""
        return self._publishing.product or self._consuming.product

    @property
    def address(self) -> Address:
        """The address of the connection that publishes, or the address that it tries next."""
        return self._publishing.address

    def send(self, messages: Sequence[Outgoing]) -> set[int]:
        """Publish messages; returns the idents of the messages that the broker confirmed.

        Raises:
            BrokerUnavailable: no confirm was received.
        """
        if not messages:
            return set()
        # The publisher has its own time limit. This longer limit matters only if the broker thread is dead.
        limit = self.patience * 6 + len(messages) / 500
        return self.loop.ask(partial(self.publisher.submit, messages), limit, "publishing")

    def send_soon(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages in the background. Whether the broker has confirmed them is not reported."""
        self.loop.call(partial(self.publisher.submit, messages, Future()))

    def declare(self, queues: Sequence[Queue]) -> Declared:
        """Declare queues. A queue that cannot be used is named in the result, and the others are declared.

        Raises:
            BrokerUnavailable, TopologyMismatch: no queue can be declared.
        """

        def question(answer: Future[Declared]) -> None:
            def told(declared: Declared) -> None:
                if declared.lost is not None:
                    refuse(answer, declared.lost)
                else:
                    resolve(answer, declared)

            self._publishing.start()
            if self._publishing.error is not None:
                refuse(answer, self._publishing.error)
            elif self.publisher.blocked:  # during an alarm the broker does not read the request
                refuse(answer, BrokerUnavailable(self.publisher.blocked))
            else:
                self._asked.append((queues, told))
                self._declare_asked()

        return self.loop.ask(question, self.patience * (2 + self.addresses), "declaring queues")

    def count(self, names: Sequence[str]) -> dict[str, Held]:
        """Count queues without declaring them. A queue that does not exist or cannot be used is missing in the result.

        Raises:
            BrokerUnavailable: the broker cannot be reached now.
        """

        def question(answer: Future[dict[str, Held]]) -> None:
            self._publishing.start()
            if not self._publishing.up:
                refuse(answer, self._publishing.error or BrokerUnavailable("There is no connection now."))
                return
            found: dict[str, Held | BrokerError] = {}

            def told(name: str, said: Held | BrokerError) -> None:
                found[name] = said
                if len(found) == len(names):
                    resolve(answer, {name: held for name, held in found.items() if isinstance(held, Held)})

            for name in names:
                QueueDeclaration(self.loop, self._publishing.connection, self.topology, name, told, self.patience)

        return self.loop.ask(question, self.patience * 2, "counting queues")

    def declare_soon(self, queues: Sequence[Queue]) -> None:
        """Declare queues in the background. Errors are only logged, because publishing also declares missing queues."""

        def ask() -> None:
            self._asked.append((queues, lambda _declared: None))
            self._declare_asked()

        self.loop.call(ask)

    def close(self) -> None:
        """Disconnect. RabbitMQ then delivers the unacknowledged messages to other consumers."""
        connections = (self._publishing, self._consuming)

        def question(answer: Future[None]) -> None:
            self._closed = True
            self.loop.cancel(self._later)
            for reconnecting in connections:
                reconnecting.close()
            wait(answer)

        def wait(answer: Future[None]) -> None:
            if not all(reconnecting.ended for reconnecting in connections):
                self.loop.later(0.01, lambda: wait(answer))
            else:
                resolve(answer, None)

        with suppress(BrokerUnavailable):  # if no answer comes, the sockets close when the thread ends
            self.loop.ask(question, self.patience, "closing")
        self.loop.stop()
        self.subscription.close()

    # --- the loop's thread -----------------------------------------------------------------

    def _publisher_up(self, connection: Any) -> None:
        def declared(_declared: Declared) -> None:  # publishing to the queues that can be used still works
            if connection is self._publishing.connection and self._publishing.up:
                self.publisher.opened(connection)
                self._declare_asked()

        queues = () if self._asked else self._queues()
        if queues:
            # Declare the queues before publishing, because a new quorum queue does not store messages safely at first.
            self._declare_on(connection, declared)
        else:
            declared(Declared())

    def _publisher_down(self, error: BrokerUnavailable) -> None:
        self.publisher.lost(error)
        if self._publishing.error is not None:
            asked, self._asked = self._asked, []
            for _, told in asked:
                told(Declared(lost=error))

    def _declare_asked(self) -> None:
        if not self._publishing.up:
            return
        asked, self._asked = self._asked, []
        for queues, told in asked:
            self._declare_queues(self._publishing.connection, queues, told)

    def _declare_again(self, told: Told) -> None:
        """Declare the topology again after a message was published to a missing queue or exchange."""
        if not self._publishing.up:
            told(Declared(lost=self._publishing.error or BrokerUnavailable("The connection was lost.")))
            return
        self._declare_on(self._publishing.connection, told)

    def _declare_on(self, connection: Any, told: Told) -> None:
        self._declare_queues(connection, self._queues() or self.topology.base(), told)

    def _declare_queues(self, connection: Any, queues: Sequence[Queue], told: Told) -> None:
        def done(declared: Declared) -> None:
            self._states.learn(declared)
            if self._states.away and self._later is None:
                self._later = self.loop.later(AGAIN_SECONDS, self._declare_what_is_away)
            told(declared)

        Declaration(self.loop, connection, self.topology, queues, done, self.patience)

    def _declare_what_is_away(self) -> None:
        """Declare the queues that could not be used, so that they are there before they are needed."""
        self._later = None
        away = self._states.away
        if away and self._publishing.up:
            everything = self._queues() or self.topology.base()
            queues = [queue for queue in everything if queue.name in away]
            self._declare_queues(self._publishing.connection, queues, lambda _declared: None)
        elif away and not self._closed:
            self._later = self.loop.later(AGAIN_SECONDS, self._declare_what_is_away)

    def _park(self, body: bytes, properties: Any, problem: str, done: Callable[[bool], None]) -> None:
        """Publish an unreadable message to the failed queue, with its bytes unchanged."""
        answer: Future[set[int]] = Future()
        # The publisher sets the answer in the loop's thread, so `done` also runs in that thread.
        answer.add_done_callback(lambda future: done(future.exception() is None and bool(future.result())))
        self.publisher.submit([outgoing_unreadable(body, properties, self.topology, problem, clock.now())], answer)
