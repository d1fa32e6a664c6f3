"""Fixtures that make transports for the contract tests. Each test has its own queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from scheduling.broker import Broker
from scheduling.broker.database import DatabaseBroker
from scheduling.broker.rabbitmq import RabbitBroker
from tests.contract.proxy import Proxy
from tests.contract.server import QUEUE_TYPE, URL, URLS_4, Server, require

RUNGS = (1, 3, 5)
"""The delays of the wait queues in most tests, in seconds. A test with few wait queues starts faster."""

NO_4 = "no RabbitMQ 4 here: TEST_RABBITMQ_4_URLS names none (tests/contract/rabbitmq-node gets one)"

MARKS_4 = [pytest.mark.rabbitmq, pytest.mark.rabbitmq4]

SERVERS = [pytest.param(URL, id="rabbitmq", marks=pytest.mark.rabbitmq)] + (
    [pytest.param(url, id=f"rabbitmq4-{urlsplit(url).port}", marks=MARKS_4) for url in URLS_4]
    or [pytest.param("", id="rabbitmq4", marks=[*MARKS_4, pytest.mark.skip(reason=NO_4)])]
)
"""The URLs of the RabbitMQ servers. Every RabbitMQ test runs once on each server."""

Connect = Callable[[], Broker]
Rabbit = Callable[..., RabbitBroker]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses `server_url` once on each RabbitMQ server.

    A test that uses `connect` also runs once with the database transport.
    """
    if "server_url" in metafunc.fixturenames:
        embedded = [pytest.param("", id="database")] if "connect" in metafunc.fixturenames else []
        metafunc.parametrize("server_url", [*embedded, *SERVERS])


@pytest.fixture
def server_url() -> str:
    """Provide the URL of a RabbitMQ server, or an empty text for the database transport.

    `pytest_generate_tests` sets the value, so pytest never calls this function.
    """
    raise NotImplementedError


@pytest.fixture
def server(server_url: str) -> Iterator[Server]:
    """Provide a client of the RabbitMQ server. The names of the test's queues begin with a unique prefix."""
    require(server_url)
    server = Server(server_url)
    yield server
    server.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """Provide a proxy in front of the server. With the proxy, a test can cause network faults."""
    proxy = Proxy(*server.address)
    yield proxy
    proxy.close()


@pytest.fixture
def rabbit(server: Server) -> Iterator[Rabbit]:
    """Provide a function that makes RabbitMQ transports for this test's queues. At the end, close the transports.

    They wait longer than an installation's, because several test runs may share the server and its disk.
    """
    made: list[RabbitBroker] = []

    def connect(port: int | None = None, patience: float = 60.0, declare: bool = True) -> RabbitBroker:
        broker = RabbitBroker(server.url(port), ladder=RUNGS, patience=patience, queue_type=QUEUE_TYPE)
        made.append(broker)
        if declare:
            broker.declare([])
        return broker

    yield connect
    for broker in made:
        broker.close()


@pytest.fixture
def connect(request: pytest.FixtureRequest, server_url: str) -> Connect:
    """Provide a function that makes transports. All transports of one test use the same queues."""
    if not server_url:
        return DatabaseBroker
    make: Connect = request.getfixturevalue("rabbit")
    return make
