"""Transports under the contract, each test on queues of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from scheduling.broker import Broker
from scheduling.broker.database import DatabaseBroker
from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.models import Scheduler
from tests.contract.proxy import Proxy
from tests.contract.server import URL, URLS_4, Server, require

RUNGS = (1, 3, 5)
"""Few wait queues make fast tests, and a server that bears many of them; the whole ladder has its own test."""

NO_4 = "no RabbitMQ 4 here: TEST_RABBITMQ_4_URLS names none (tests/contract/rabbitmq-node gets one)"

SERVERS = [pytest.param(URL, id="rabbitmq")] + (
    [pytest.param(each, id=f"rabbitmq4-{urlsplit(each).port}", marks=pytest.mark.rabbitmq4) for each in URLS_4]
    or [pytest.param("", id="rabbitmq4", marks=[pytest.mark.rabbitmq4, pytest.mark.skip(reason=NO_4)])]
)
"""Everything that is tested on RabbitMQ is tested on each of these."""

Connect = Callable[[], Broker]
Rabbit = Callable[..., RabbitBroker]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test once for each transport that it is about."""
    if "server_url" in metafunc.fixturenames:
        embedded = [pytest.param("", id="database")] if "connect" in metafunc.fixturenames else []
        metafunc.parametrize("server_url", [*embedded, *SERVERS])


@pytest.fixture
def server_url() -> str:
    """Where the broker is; empty for the embedded transport. `pytest_generate_tests` says."""
    raise NotImplementedError


@pytest.fixture(autouse=True)
def only_ours(db: None) -> None:
    """No nightly row."""
    Scheduler.objects.all().delete()


@pytest.fixture
def server(server_url: str) -> Iterator[Server]:
    """A part of the RabbitMQ server."""
    require(server_url)
    server = Server(server_url)
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


@pytest.fixture
def connect(request: pytest.FixtureRequest, server_url: str) -> Connect:
    """Makes one transport after the other: processes that share queues."""
    if not server_url:
        return DatabaseBroker
    make: Connect = request.getfixturevalue("rabbit")
    return make
