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
from scheduling.broker.rabbitmq.connection import ReconnectingConnection
from scheduling.broker.rabbitmq.declaration import Declaration
from scheduling.broker.rabbitmq.errors import Outage
from scheduling.broker.rabbitmq.io_thread import IoThread, refuse, resolve
from scheduling.broker.rabbitmq.messages import Outgoing, outgoing_unreadable
from scheduling.broker.rabbitmq.publisher import Publisher
from scheduling.broker.rabbitmq.subscription import Subscription
from scheduling.broker.rabbitmq.topology import Queue, Topology
from scheduling.broker.rabbitmq.watchdog import Watchdog
from scheduling.logs import get_logger

log = get_logger(__name__)

Told = Callable[[BrokerError | None, dict[str, int]], None]
"""A callback for the end of a declaration.

The arguments are the error (or None) and a dict that maps each queue name to its number of ready messages.
"""


class Client:
    """Publishes on one connection and consumes on another.

    During a memory or disk alarm, the broker stops reading from connections that publish. Acknowledgements must
    continue, so they use the connection that consumes. Each connection is opened when it is first needed.

    Args:
        queues: returns the queues to declare on a new connection; returns no queues before the first `declare`.
        patience: the longest time in seconds to wait for an answer or a confirm.
    """

    def __init__(
        self, address: Address, topology: Topology, queues: Callable[[], Sequence[Queue]], patience: float
    ) -> None:
        self.topology, self.patience = topology, patience
        self._queues = queues
        self.loop = IoThread("rabbitmq")
        outage = Outage(address)
        self.publisher = Publisher(self.loop, self._declare_again, patience)
        self.subscription = Subscription(self.loop, self._park, self._declare_on)
        self._publishing = ReconnectingConnection(
            self.loop, address, "publish", outage, self._publisher_up, self._publisher_down, patience
        )
        self._consuming = ReconnectingConnection(
            self.loop, address, "consume", outage, self.subscription.opened, self.subscription.lost, patience
        )
        self.publisher.reconnecting, self.subscription.reconnecting = self._publishing, self._consuming
        self.loop.call(lambda: Watchdog(self.subscription))
        self._asked: list[tuple[Sequence[Queue], Told]] = []

    # --- the caller's thread ---------------------------------------------------------------

    @property
    def product(self) -> str:
        """Name and version of the broker; empty before the first connection."""
        return self._publishing.product or self._consuming.product

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

    def declare(self, queues: Sequence[Queue]) -> dict[str, int]:
        """Declare queues; returns a dict that maps each queue name to its number of ready messages.

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
            elif self.publisher.blocked:  # during an alarm the broker does not read the request
                told(BrokerUnavailable(self.publisher.blocked), {})
            else:
                self._asked.append((queues, told))
                self._declare_asked()

        return self.loop.ask(question, self.patience * 3, "declaring queues")

    def declare_soon(self, queues: Sequence[Queue]) -> None:
        """Declare queues in the background. Errors are only logged, because publishing also declares missing queues."""

        def told(error: BrokerError | None, _ready: dict[str, int]) -> None:
            if error is not None:
                log.warning("%s", error)

        def ask() -> None:
            self._asked.append((queues, told))
            self._declare_asked()

        self.loop.call(ask)

    def close(self) -> None:
        """Disconnect. RabbitMQ then delivers the unacknowledged messages to other consumers."""
        connections = (self._publishing, self._consuming)

        def question(answer: Future[None]) -> None:
            for reconnecting in connections:
                reconnecting.close()
            wait(answer)

        def wait(answer: Future[None]) -> None:
            if any(reconnecting.connection is not None for reconnecting in connections):
                self.loop.later(0.01, lambda: wait(answer))
            else:
                resolve(answer, None)

        with suppress(BrokerUnavailable):  # if no answer comes, the sockets close when the thread ends
            self.loop.ask(question, self.patience, "closing")
        self.loop.stop()
        self.subscription.close()

    # --- the loop's thread -----------------------------------------------------------------

    def _publisher_up(self, connection: Any) -> None:
        def declared(error: BrokerError | None, _ready: dict[str, int]) -> None:
            if error is not None:
                log.error("%s", error)  # publishing to the existing queues still works
            if connection is self._publishing.connection and self._publishing.up:
                self.publisher.opened(connection)
                self._declare_asked()

        queues = () if self._asked else self._queues()
        if queues:
            # Declare the queues before publishing, because a new quorum queue does not store messages safely at first.
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
        """Declare the topology again after a message was published to a missing queue or exchange."""
        if not self._publishing.up:
            done(self._publishing.error or BrokerUnavailable("The connection was lost."))
            return
        self._declare_on(self._publishing.connection, done)

    def _declare_on(self, connection: Any, done: Callable[[BrokerError | None], None]) -> None:
        queues = self._queues() or self.topology.base()
        Declaration(self.loop, connection, self.topology, queues, lambda error, _: done(error), self.patience)

    def _park(self, body: bytes, properties: Any, problem: str, done: Callable[[bool], None]) -> None:
        """Publish an unreadable message to the failed queue, with its bytes unchanged."""
        answer: Future[set[int]] = Future()
        # The publisher sets the answer in the loop's thread, so `done` also runs in that thread.
        answer.add_done_callback(lambda future: done(future.exception() is None and bool(future.result())))
        self.publisher.submit([outgoing_unreadable(body, properties, self.topology, problem, clock.now())], answer)
