"""A connection that reconnects until the caller closes it: to one address after the other, with backoff and jitter."""

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
from scheduling.broker.rabbitmq.addresses import Addresses
from scheduling.broker.rabbitmq.errors import explain
from scheduling.broker.rabbitmq.header_values import tolerate_values
from scheduling.broker.rabbitmq.io_thread import IoThread
from scheduling.broker.rabbitmq.outage import Outage
from scheduling.logs import get_logger

# For every failed try to connect, pika logs stack traces. `Outage` logs one line instead.
logging.getLogger("pika").setLevel(logging.CRITICAL)

tolerate_values()

log = get_logger(__name__)

FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0

STABLE_SECONDS = 5.0
"""If a connection lasted longer than this before it was lost, the first reconnect starts without a delay."""


class ReconnectingConnection:
    """A connection that is either for publishing or for consuming. Every method runs in the loop's thread.

    After a loss or a failed try, the next address is tried at once. Only when every address has failed since the last
    success, this is an outage: it is logged, callers get the error, and the next try waits. An address that accepts a
    connection and says nothing is given up after the patience.

    Args:
        role: `publish` or `consume`.
        on_up: called with every new connection.
        on_down: called when a connection is lost and when a try to connect fails.
        patience: the time limit for connecting to one address, in seconds. The login at the only address has twice as
            long.
    """

    def __init__(
        self,
        loop: IoThread,
        addresses: Addresses,
        role: str,
        outage: Outage,
        on_up: Callable[[Any], None],
        on_down: Callable[[BrokerUnavailable], None],
        patience: float = 5.0,
    ) -> None:
        self.loop, self._addresses, self.role = loop, addresses, role
        self._position, self._failed = addresses.start(), 0
        self._outage, self._on_up, self._on_down, self._patience = outage, on_up, on_down, patience
        self.connection: Any = None
        """A pika connection, which may still be opening; None while there is no connection."""
        self.error: BrokerUnavailable | None = None
        """Why the last try to connect failed, if every address has failed since the last success.

        The value is None while the connection is up. After a loss, it stays None until all tries to reconnect fail.
        """
        self.product = ""
        """Name and version of the broker, such as `RabbitMQ 3.10.8`; empty before the first connection."""
        self._failures = 0
        self._opened_at: float | None = None
        self._tried_since = time.monotonic()
        self._timer: Any = None
        self._closed = self._started = False
        self._dropped: list[Any] = []
        """Former connections whose close the broker has not confirmed yet."""
        loop.on_crash.append(self._crashed)

    @property
    def address(self) -> Address:
        """The address of the connection, or the address that is tried next."""
        return self._addresses.all[self._position]

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
        self._dropped.append(former)
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
        self._dropped = [former for former in self._dropped if _is_ending(former)]

    @property
    def ended(self) -> bool:
        """Whether no connection of this role has an open socket."""
        return self.connection is None and all(former.is_closed for former in self._dropped)

    def _connect(self) -> None:
        self._timer = None
        if self._closed:
            return
        if self._failed % len(self._addresses) == 0:
            self._tried_since = time.monotonic()
        login = self._patience if len(self._addresses) > 1 else None
        try:
            self.connection = pika.SelectConnection(
                self.address.parameters(self.role, self._patience, login),
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
        self._opened_at, self.error, self._failed = time.monotonic(), None, 0
        self.product = product_of(connection.server_properties)
        self._outage.connected(self.role)
        self._on_up(connection)

    def _ended(self, connection: Any, error: BaseException) -> None:
        self._dropped = [former for former in self._dropped if former is not connection]
        if connection is self.connection:
            self.connection = None
            self._lost(explain(error, self.address))

    def _lost(self, error: BrokerUnavailable) -> None:
        if self._closed:
            self._on_down(error)
            return
        opened_at, self._opened_at = self._opened_at, None
        if opened_at is not None:
            self._tried_since = time.monotonic()
            if self._tried_since - opened_at > STABLE_SECONDS:
                self._failures = 0
        self._position = (self._position + 1) % len(self._addresses)
        self._failed += 1
        delay = 0.0
        if self._failed < len(self._addresses):
            log.info("%s The next address is tried: %s", error, self.address)
        else:
            if opened_at is None:
                self.error = error
            self._outage.begins(self.role, error, self._tried_since)
            if self._failed % len(self._addresses) == 0:
                delay = self._backoff()
        self._timer = self.loop.later(delay, self._connect)
        self._on_down(error)

    def _backoff(self) -> float:
        """The seconds before the addresses are tried once more."""
        delay = 0.0
        if self._failures:
            delay = min(FIRST_DELAY * 2.0 ** (self._failures - 1), LONGEST_DELAY)
            delay *= random.uniform(0.5, 1.5)  # noqa: S311 - processes must not all reconnect at once
        self._failures += 1
        return delay

    def _crashed(self, error: BaseException) -> None:
        if self.connection is not None:
            self.drop(BrokerUnavailable(f"The connection to {self.address} is started anew: {error!r}"))


def _is_ending(former: Any) -> bool:
    """End a connection whose close is not confirmed. Otherwise its socket would stay open."""
    try:
        # pika has no public way to do this.
        former._terminate_stream(exceptions.ConnectionClosedByClient(200, "It was dropped"))
    except Exception:
        return False
    return True


def product_of(properties: Any) -> str:
    """Read name and version from the broker's properties. The properties may hold values of any type."""
    said = properties if isinstance(properties, dict) else {}
    words = [said[name] for name in ("product", "version") if isinstance(said.get(name), str)]
    return " ".join(words)[:100]
