"""These fixtures provide the transports for the contract tests. Each test uses queues that no other test uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from scheduling.broker import Broker
from scheduling.broker.database import DatabaseBroker
from scheduling.broker.rabbitmq import RabbitBroker
from tests.contract.proxy import Proxy
from tests.contract.server import URL, URLS_4, Server, require

RUNGS = (1, 3, 5)
"""Delays of the wait queues in seconds. With few wait queues, tests are fast and do not fill the server.

LADDER is the full list of delays. One test checks LADDER.
"""

NO_4 = "no RabbitMQ 4 here: TEST_RABBITMQ_4_URLS names none (tests/contract/rabbitmq-node gets one)"

MARKS_4 = [pytest.mark.rabbitmq, pytest.mark.rabbitmq4]

SERVERS = [pytest.param(URL, id="rabbitmq", marks=pytest.mark.rabbitmq)] + (
    [pytest.param(url, id=f"rabbitmq4-{urlsplit(url).port}", marks=MARKS_4) for url in URLS_4]
    or [pytest.param("", id="rabbitmq4", marks=[*MARKS_4, pytest.mark.skip(reason=NO_4)])]
)
"""The RabbitMQ servers. Every RabbitMQ test runs once on each server."""

Connect = Callable[[], Broker]
Rabbit = Callable[..., RabbitBroker]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test once for each transport that it covers."""
    if "server_url" in metafunc.fixturenames:
        embedded = [pytest.param("", id="database")] if "connect" in metafunc.fixturenames else []
        metafunc.parametrize("server_url", [*embedded, *SERVERS])


@pytest.fixture
def server_url() -> str:
    """The broker's URL. It is empty for the database transport, whose messages travel through the executions table.

    `pytest_generate_tests` provides the value instead of this function.
    """
    raise NotImplementedError


@pytest.fixture
def server(server_url: str) -> Iterator[Server]:
    """Provide a RabbitMQ server on which this test's queues have a name prefix that no other test uses."""
    require(server_url)
    server = Server(server_url)
    yield server
    server.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """Provide a proxy between the test and the server. With this proxy, a test can cause network faults."""
    proxy = Proxy(*server.address)
    yield proxy
    proxy.close()


@pytest.fixture
def rabbit(server: Server) -> Iterator[Rabbit]:
    """Provide a function that makes RabbitMQ transports on this test's queues. At the end, close all transports."""
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


@pytest.fixture
def connect(request: pytest.FixtureRequest, server_url: str) -> Connect:
    """Provide a function that makes transports. The transports of one test use the same queues, as processes do."""
    if not server_url:
        return DatabaseBroker
    make: Connect = request.getfixturevalue("rabbit")
    return make
