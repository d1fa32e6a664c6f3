"""Transports under the contract, each test on queues of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from scheduling.broker import Broker
from scheduling.broker.database import DatabaseBroker
from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.models import Scheduler
from tests.contract.proxy import Proxy
from tests.contract.server import Server, require

RUNGS = (1, 2, 3, 5, 10)
"""Few wait queues make fast tests; the whole ladder is declared once, in its own test."""

Connect = Callable[[], Broker]
Rabbit = Callable[..., RabbitBroker]


@pytest.fixture(autouse=True)
def only_ours(db: None) -> None:
    """No nightly row."""
    Scheduler.objects.all().delete()


@pytest.fixture
def server() -> Iterator[Server]:
    """A part of the RabbitMQ server."""
    require()
    server = Server()
    yield server
    server.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A network in between."""
    proxy = Proxy(*server.address)
    yield proxy
    proxy.close()


@pytest.fixture
def rabbit(server: Server) -> Iterator[Rabbit]:
    """Makes RabbitMQ transports, all on this test's queues, and closes them."""
    made: list[RabbitBroker] = []

    def connect(port: int | None = None, patience: float = 5.0, declare: bool = True) -> RabbitBroker:
        broker = RabbitBroker(server.url(port), ladder=RUNGS, patience=patience)
        made.append(broker)
        if declare:
            broker.declare([])
        return broker

    yield connect
    for broker in made:
        broker.close()


@pytest.fixture(params=["database", "rabbitmq"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """Makes one transport after the other: processes that share queues."""
    if request.param == "database":
        return DatabaseBroker
    make: Connect = request.getfixturevalue("rabbit")
    return make
