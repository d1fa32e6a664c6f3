"""Chooses the transport: `get_broker(url)` makes the adapter for the URL's scheme."""

from __future__ import annotations

from scheduling.broker.base import (
    Broker,
    BrokerError,
    BrokerNode,
    BrokerRefused,
    BrokerUnavailable,
    Counts,
    Delivery,
    FailedQueueBusy,
    Parked,
    QueueUnavailable,
    TopologyMismatch,
)
from scheduling.conf import get_conf
from scheduling.core.setting_values import ConfError

__all__ = [
    "Broker",
    "BrokerError",
    "BrokerNode",
    "BrokerRefused",
    "BrokerUnavailable",
    "Counts",
    "Delivery",
    "FailedQueueBusy",
    "Parked",
    "QueueUnavailable",
    "TopologyMismatch",
    "address_count",
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
        patience = min(5.0, conf.lease_seconds / 3)
        return RabbitBroker(url, retry_delay_ms=conf.retry.delay_ms, patience=patience, queue_type=conf.queue_type)
    raise ConfError(f"No transport serves {scheme}:// addresses.")


def address_count(url: str) -> int:
    """Check a broker URL without connecting; returns how many addresses it names, 0 if the database is the queue.

    Raises:
        ConfError: the URL cannot be read. The error text never contains a password.
    """
    if not url.startswith(("amqp://", "amqps://")):
        return 0
    from scheduling.broker.rabbitmq.addresses import Addresses

    return len(Addresses.read(url))
