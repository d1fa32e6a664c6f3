"""Transports: `get_broker(url)` chooses the adapter by the URL's scheme."""

from __future__ import annotations

from scheduling.broker.base import (
    Broker,
    BrokerError,
    BrokerRefused,
    BrokerUnavailable,
    Counts,
    Delivery,
    Parked,
    ParkedBusy,
    ParkedSession,
    TopologyMismatch,
)
from scheduling.conf import ConfError, get_conf

__all__ = [
    "Broker",
    "BrokerError",
    "BrokerRefused",
    "BrokerUnavailable",
    "Counts",
    "Delivery",
    "Parked",
    "ParkedBusy",
    "ParkedSession",
    "TopologyMismatch",
    "get_broker",
]


def get_broker(url: str | None = None) -> Broker:
    """A transport of one's own; the caller closes it.

    Raises:
        ConfError: for a scheme nobody serves, or a URL that cannot be read.
    """
    url = url or get_conf().broker_url
    scheme = url.split("://", 1)[0]
    if scheme == "database":
        from scheduling.broker.database import DatabaseBroker

        return DatabaseBroker()
    if scheme in {"amqp", "amqps"}:
        from scheduling.broker.rabbitmq import RabbitBroker

        conf = get_conf()
        # A stalled broker holds up the consumer that renews the leases: never for a third of a lease.
        return RabbitBroker(url, retry_delay_ms=conf.retry.delay_ms, patience=min(5.0, conf.lease_seconds / 3))
    raise ConfError(f"No transport serves {scheme}:// addresses.")
