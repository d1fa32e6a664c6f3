"""Logs each outage of the broker with one line at its start and one line at its end."""

from __future__ import annotations

import time

from scheduling.broker.base import BrokerRefused, BrokerUnavailable
from scheduling.broker.rabbitmq.addresses import Addresses
from scheduling.logs import get_logger

log = get_logger(__name__)


class Outage:
    """Logs one line when the broker is lost and one line when the broker is back.

    There is still only one line if several connections are lost, if several tries to connect fail, if queues cannot be
    used, and if messages are not confirmed. Each of these is a role, and the outage ends with the last of them.

    Nothing is logged for tries to connect that began before another connection came up: the broker is back, and this
    role has not tried it since. Otherwise one outage of several addresses would be logged as two.
    """

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._down: set[str] = set()
        self._since = 0.0
        self._connected_at = float("-inf")

    def begins(self, role: str, error: BrokerUnavailable, tried_since: float | None = None) -> None:
        """Record that the connection of this role is lost or cannot be made, or another thing that does not work.

        Args:
            tried_since: when the tries began that have failed, on the monotonic clock.
        """
        if tried_since is not None and tried_since < self._connected_at:
            return
        if not self._down:
            self._since = time.monotonic()
            if isinstance(error, BrokerRefused):
                log.error("%s", error)
            else:
                text = str(error)
                log.warning("%s It is tried again until it works.", text if text.endswith((".", "?")) else f"{text}.")
        self._down.add(role)

    def connected(self, role: str) -> None:
        """Record that the connection of this role is up."""
        self._connected_at = time.monotonic()
        self.ends(role)

    def ends(self, role: str) -> None:
        """Record that what this role stands for works again."""
        if role in self._down:
            self._down.discard(role)
            if not self._down:
                seconds = time.monotonic() - self._since
                log.info("RabbitMQ at %s is back after %.1f s", self._addresses, seconds)
