"""Asks each address of CRON_BROKER_URL who answers there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pika
from pika import exceptions

from scheduling.broker.base import BrokerNode
from scheduling.broker.rabbitmq.address import Address
from scheduling.broker.rabbitmq.connection import product_of
from scheduling.broker.rabbitmq.errors import explain
from scheduling.broker.rabbitmq.io_thread import IoThread, resolve


def probe(loop: IoThread, addresses: Sequence[Address], patience: float) -> list[BrokerNode]:
    """Log in at all addresses at the same time; returns what each of them is, in their order.

    Args:
        patience: the time limit for each login, in seconds.
    """
    found: dict[Address, BrokerNode] = {}

    def question(answer: Future[list[BrokerNode]]) -> None:
        def told(address: Address, node: BrokerNode) -> None:
            found.setdefault(address, node)
            if len(found) == len(addresses):
                resolve(answer, [found[one] for one in addresses])

        for address in addresses:
            _ask(loop, address, patience, told)

    return loop.ask(question, patience * 3, "asking each address")


def _ask(loop: IoThread, address: Address, patience: float, told: Callable[[Address, BrokerNode], None]) -> None:
    def opened(connection: Any) -> None:
        properties = connection.server_properties
        cluster = properties.get("cluster_name") if isinstance(properties, dict) else ""
        name = cluster[:200] if isinstance(cluster, str) else ""
        told(address, BrokerNode(str(address), product_of(properties), name))
        with suppress(exceptions.AMQPError):
            connection.close()

    def ended(_connection: Any, error: BaseException) -> None:
        told(address, BrokerNode(str(address), problem=str(explain(error, address))))

    try:
        pika.SelectConnection(
            address.parameters("doctor", patience, patience),
            on_open_callback=opened,
            on_open_error_callback=ended,
            on_close_callback=ended,
            custom_ioloop=loop.selector,
        )
    except (exceptions.AMQPError, OSError) as error:
        ended(None, error)
