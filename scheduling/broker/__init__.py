"""Chooses the transport: `get_broker(url)` makes the adapter for the URL's scheme."""

from __future__ import annotations

from scheduling.broker.base import (
    Broker,
    BrokerError,
    BrokerRefused,
    BrokerUnavailable,
    Counts,
    Delivery,
    FailedQueueBusy,
    Parked,
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
    "FailedQueueBusy",
    "Parked",
    "TopologyMismatch",
    "get_broker",
]


def get_broker(url: str | None = None) -> Broker:
    """Make a new transport. The caller closes it.

    Raises:
        ConfError: no adapter serves this scheme, or the URL cannot be read.
    """
    url = url or get_conf().broker_url
    scheme = url.split("://", 1)[0]
    if scheme == "database":
        from scheduling.broker.database import DatabaseBroker

        return DatabaseBroker()
    if scheme in {"amqp", "amqps"}:
        from scheduling.broker.rabbitmq import RabbitBroker

        conf = get_conf()
        # While the consumer waits for a stalled broker, it cannot renew its leases. So it waits a third of a lease
        # at most.
        return RabbitBroker(url, retry_delay_ms=conf.retry.delay_ms, patience=min(5.0, conf.lease_seconds / 3))
    raise ConfError(f"No transport serves {scheme}:// addresses.")
