"""A connection that reconnects with backoff and jitter until the caller closes it."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pika
from pika import exceptions

from scheduling.broker.base import BrokerUnavailable
from scheduling.broker.rabbitmq.address import Address
from scheduling.broker.rabbitmq.errors import Outage, explain
from scheduling.broker.rabbitmq.header_values import tolerate_values
from scheduling.broker.rabbitmq.io_thread import IoThread

# For every failed try to connect, pika logs stack traces. `Outage` logs one line instead.
logging.getLogger("pika").setLevel(logging.CRITICAL)

tolerate_values()

FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0

STABLE_SECONDS = 5.0
"""If a connection lasted longer than this before it was lost, the first reconnect starts without a delay."""


class ReconnectingConnection:
    """A connection that is either for publishing or for consuming. Every method runs in the loop's thread.

    Args:
        role: `publish` or `consume`.
        on_up: called with every new connection.
        on_down: called when a connection is lost and when a try to connect fails.
    """

    def __init__(
        self,
        loop: IoThread,
        address: Address,
        role: str,
        outage: Outage,
        on_up: Callable[[Any], None],
        on_down: Callable[[BrokerUnavailable], None],
        patience: float = 5.0,
    ) -> None:
        self.loop, self.address, self.role = loop, address, role
        self._outage, self._on_up, self._on_down, self._patience = outage, on_up, on_down, patience
        self.connection: Any = None
        """A pika connection, which may still be opening; None while there is no connection."""
        self.error: BrokerUnavailable | None = None
        """Why the last try to connect failed.

        The value is None while the connection is up. After a loss, it stays None until a try to reconnect fails.
        """
        self.product = ""
        """Name and version of the broker, such as `RabbitMQ 3.10.8`; empty before the first connection."""
        self._failures = 0
        self._opened_at: float | None = None
        self._timer: Any = None
        self._closed = self._started = False
        loop.on_crash.append(self._crashed)

    @property
    def up(self) -> bool:
        """Whether channels can be opened."""
        return self.connection is not None and bool(self.connection.is_open)

    def start(self) -> None:
        """Connect. Only the first call has an effect."""
        if not self._started and not self._closed:
            self._started = True
            self._connect()

    def drop(self, error: BrokerUnavailable) -> None:
        """Close a connection that does not answer, and make a new one."""
        former, self.connection = self.connection, None
        if former is None:
            return
        # The broker may never confirm the close. In that case, missed heartbeats end the old connection. Later
        # callbacks of the old connection are ignored. After a crash inside pika, the connection may be in any state, so
        # all errors are suppressed.
        with suppress(Exception):
            former.close()
        self._lost(error)

    def close(self) -> None:
        """Disconnect for good."""
        self._closed = True
        self.loop.cancel(self._timer)
        if self.connection is not None and not (self.connection.is_closed or self.connection.is_closing):
            with suppress(exceptions.AMQPError):
                self.connection.close()

    def _connect(self) -> None:
        self._timer = None
        if self._closed:
            return
        try:
            self.connection = pika.SelectConnection(
                self.address.parameters(self.role, self._patience),
                on_open_callback=self._opened,
                on_open_error_callback=self._ended,
                on_close_callback=self._ended,
                custom_ioloop=self.loop.selector,
            )
        except (exceptions.AMQPError, OSError) as error:
            self._lost(explain(error, self.address))

    def _opened(self, connection: Any) -> None:
        if connection is not self.connection:
            return
        self._opened_at, self.error = time.monotonic(), None
        self.product = _product(connection.server_properties)
        self._outage.ends(self.role)
        self._on_up(connection)

    def _ended(self, connection: Any, error: BaseException) -> None:
        if connection is self.connection:
            self.connection = None
            self._lost(explain(error, self.address))

    def _lost(self, error: BrokerUnavailable) -> None:
        if self._closed:
            self._on_down(error)
            return
        opened_at, self._opened_at = self._opened_at, None
        if opened_at is None:
            self.error = error
        elif time.monotonic() - opened_at > STABLE_SECONDS:
            self._failures = 0
        delay = 0.0
        if self._failures:
            delay = min(FIRST_DELAY * 2.0 ** (self._failures - 1), LONGEST_DELAY)
            delay *= random.uniform(0.5, 1.5)  # noqa: S311 - processes must not all reconnect at once
        self._failures += 1
        self._outage.begins(self.role, error)
        self._timer = self.loop.later(delay, self._connect)
        self._on_down(error)

    def _crashed(self, error: BaseException) -> None:
        if self.connection is not None:
            self.drop(BrokerUnavailable(f"The connection to {self.address} is started anew: {error!r}"))


def _product(properties: Any) -> str:
    """Read name and version from the broker's properties. The properties may hold values of any type."""
    said = properties if isinstance(properties, dict) else {}
    words = [said[name] for name in ("product", "version") if isinstance(said.get(name), str)]
    return " ".join(words)[:100]
