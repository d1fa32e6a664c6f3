"""BROKER_URL names several addresses. An address that refuses, is silent or lies is passed over."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from django.utils import timezone as clock

from scheduling.broker import BrokerUnavailable
from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.broker.rabbitmq.addresses import Addresses
from scheduling.core.messages import TaskMessage
from tests.contract.conftest import RUNGS
from tests.contract.proxy import Proxy
from tests.contract.server import Server
from tests.support import wait_for

pytestmark = pytest.mark.any_database

PATIENCE = 1.0


def url(server: Server, *ports: int) -> str:
    """Return a BROKER_URL with these ports of this machine, in this order."""
    _, _, rest = server.url(ports[0]).partition(f":{ports[0]}")
    head = server.url(ports[0]).removesuffix(rest)
    return ",".join([head, *(f"127.0.0.1:{port}" for port in ports[1:])]) + rest


@pytest.fixture
def silent() -> Iterator[int]:
    """Provide the port of an address that accepts connections and says nothing, like a suspended node."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield int(listener.getsockname()[1])


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each connection begin at the first address."""
    monkeypatch.setattr(Addresses, "start", lambda _self: 0)


def published(broker: RabbitBroker, number: int = 1) -> bool:
    try:
        return broker.publish([TaskMessage("worker", 1, execution_id=number, scheduled_at=clock.now())]) == {number}
    except BrokerUnavailable:
        return False


@pytest.mark.usefixtures("in_order")
def test_addresses_that_refuse_or_are_silent_are_passed_over(
    server: Server, silent: int, free_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    address = url(server, free_port, silent, server.address[1])
    with closing(RabbitBroker(address, ladder=RUNGS, patience=PATIENCE)) as broker, caplog.at_level(logging.INFO):
        broker.declare([])
        assert published(broker)
        assert server.count(server.name("main")) == 1
        broker.consume({"main": 1})
        wait_for(lambda: broker.take(["main"], 1, clock.now()), "the message arrives")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert "The next address is tried" in caplog.text


@pytest.mark.usefixtures("in_order")
def test_each_reconnect_goes_on_to_the_next_address(server: Server, silent: int) -> None:
    with ExitStack() as stack:
        proxies = [stack.enter_context(closing(Proxy(*server.address))) for _ in range(2)]
        address = url(server, proxies[0].port, silent, proxies[1].port)
        broker = stack.enter_context(closing(RabbitBroker(address, ladder=RUNGS, patience=PATIENCE)))
        broker.declare([])
        assert published(broker, 1)
        proxies[0].shut()
        wait_for(lambda: published(broker, 2), "it publishes through the third address")
        proxies[0].reopen()
        proxies[1].freeze()  # this address is silent from now on
        wait_for(lambda: published(broker, 3), "it publishes through the first address again")


def test_one_line_tells_of_an_outage_of_all_addresses(
    server: Server, silent: int, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Proxy(*server.address)) as proxy:
        address = url(server, proxy.port, silent)
        with closing(RabbitBroker(address, ladder=RUNGS, patience=PATIENCE)) as broker, caplog.at_level(logging.INFO):
            broker.declare([])
            broker.consume({"main": 1})
            wait_for(lambda: published(broker), "it publishes")
            proxy.shut()
            wait_for(lambda: not published(broker) and "It is tried again" in caplog.text, "it is an outage")
            for _ in range(5):
                assert not published(broker)
            proxy.reopen()
            wait_for(lambda: published(broker) and "is back after" in caplog.text, "it is over")
            wait_for(lambda: broker._running()._consuming.up, "it consumes")
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1, lines


@pytest.mark.usefixtures("in_order")
def test_who_answers_at_each_address(server: Server, silent: int, free_port: int) -> None:
    address = url(server, free_port, server.address[1], silent)
    with closing(RabbitBroker(address, ladder=RUNGS, patience=PATIENCE)) as broker:
        refuses, answers, says_nothing = broker.nodes()
    assert "Nothing listens at" in refuses.problem
    assert (answers.problem, answers.product.split()[0]) == ("", "RabbitMQ")
    assert answers.cluster
    assert "says nothing" in says_nothing.problem
    assert "guest:" not in refuses.problem + says_nothing.problem


@pytest.mark.django_db
@pytest.mark.usefixtures("in_order")
def test_the_failed_queue_is_read_at_an_address_that_works(server: Server, silent: int) -> None:
    address = url(server, silent, server.address[1])
    with closing(RabbitBroker(address, ladder=RUNGS, patience=PATIENCE)) as broker:
        broker.declare([])
        with broker.failed_queue() as session:
            assert session.messages == []
