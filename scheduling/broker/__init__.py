"""Transports: `get_broker(url)` chooses the adapter by the URL's scheme."""

from __future__ import annotations

from scheduling.broker.base import (
    Broker,
    BrokerError,
    BrokerUnavailable,
    Counts,
    Delivery,
    TopologyMismatch,
)
from scheduling.conf import ConfError, get_conf

__all__ = [
    "Broker",
    "BrokerError",
    "BrokerUnavailable",
    "Counts",
    "Delivery",
    "TopologyMismatch",
    "get_broker",
]


def get_broker(url: str | None = None) -> Broker:
    """A transport of one's own; the caller closes it.

    Raises:
        ConfError: for a scheme nobody serves.
    """
    url = url or get_conf().broker_url
    scheme = url.split("://", 1)[0]
    if scheme == "database":
        from scheduling.broker.database import DatabaseBroker

        return DatabaseBroker()
    raise ConfError(f"No transport serves {scheme}:// addresses.")
