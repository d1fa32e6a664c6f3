"""The tests declare the queues on a real server. A second declaration with other retry delays is not an error."""

from __future__ import annotations

import pika
import pytest

from scheduling.broker import TopologyMismatch
from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.broker.rabbitmq.ladder import LADDER
from tests.contract.conftest import RUNGS, Rabbit
from tests.contract.server import Server
from tests.support import wait_for

pytestmark = pytest.mark.django_db


def exists(server: Server, queue: str) -> bool:
    try:
        server.channel.queue_declare(queue, passive=True)
    except pika.exceptions.ChannelClosedByBroker:
        server.reopen()
        return False
    return True


def test_all_wait_queues_are_declared_and_can_be_declared_again(server: Server) -> None:
    broker = RabbitBroker(server.url())
    try:
        broker.declare([4500, 7000], "main")
        broker.declare([4500, 7000], "main")
        for seconds in (*LADDER, 7):
            server.channel.queue_declare(f"{server.name('main')}_retry.{seconds}", passive=True)
        assert broker.delay(6500, "main") == 7000
    finally:
        broker.close()


def test_a_new_wait_queue_is_declared_before_its_first_message(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    broker.declare([], "standalone")
    broker.declare([4000, 7000], "standalone")
    assert broker.delay(3500, "standalone") == 4000
    wait_for(lambda: exists(server, f"{server.name('standalone')}_retry.7"), "it is declared")


def test_only_the_consumers_of_a_queue_declare_its_wait_queues(rabbit: Rabbit, server: Server) -> None:
    """Each wait queue uses file handles of the broker. So a consumer declares only the wait queues of its own queue."""
    rabbit().declare([7000])
    assert not exists(server, f"{server.name('main')}_retry.1")
    rabbit().declare([7000], "main")
    assert exists(server, f"{server.name('main')}_retry.1")
    assert not exists(server, f"{server.name('standalone')}_retry.1")


def test_the_names_of_all_queues_begin_with_the_prefix(server: Server) -> None:
    assert all(queue.name.startswith(server.prefix) for queue in server.topology.base())


def test_changed_delays_start_without_a_conflict(server: Server) -> None:
    for delay in (30_000, 45_000, 1_000):
        broker = RabbitBroker(server.url(), retry_delay_ms=delay, ladder=RUNGS)
        try:
            broker.declare([delay])
        finally:
            broker.close()


def test_a_wait_queue_in_use_keeps_its_delay(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    first = RabbitBroker(server.url(), retry_delay_ms=60_000, ladder=RUNGS)
    first.declare([])
    first.close()
    server.publish(b"waits", f"{server.name('main')}_retry")
    second = RabbitBroker(server.url(), retry_delay_ms=30_000, ladder=RUNGS)
    try:
        second.declare([])
        assert "still waits '60000' ms" in caplog.text
        assert server.count(f"{server.name('main')}_retry") == 1
    finally:
        second.close()


def test_a_queue_with_other_arguments_has_an_error_message(server: Server) -> None:
    server.channel.queue_declare(server.name("main"), durable=True, arguments={"x-dead-letter-exchange": "elsewhere"})
    broker = RabbitBroker(server.url(), ladder=RUNGS)
    try:
        with pytest.raises(TopologyMismatch) as caught:
            broker.declare([])
    finally:
        broker.close()
    text = str(caught.value)
    for words in (server.name("main"), "x-dead-letter-exchange", "'elsewhere'", server.topology.exchange, "?prefix="):
        assert words in text


def test_original_declarations_agree_with_ours(rabbit: Rabbit, server: Server) -> None:
    """A worker of the original contract and our consumer can use the same queues at the same time.

    Both declare the queues. RabbitMQ would refuse the second declaration if the arguments were different.
    """
    rabbit()
    channel = server.channel
    channel.exchange_declare(server.topology.exchange, "direct", durable=True)
    main = {
        "x-message-deduplication": True,
        "x-dead-letter-exchange": server.topology.exchange,
        "x-dead-letter-routing-key": "retry",
    }
    channel.queue_declare(server.name("main"), durable=True, arguments=main)
    retry = {
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": server.name("main"),
        "x-message-ttl": 30000,
    }
    channel.queue_declare(f"{server.name('main')}_retry", durable=True, arguments=retry)
    channel.queue_declare(server.topology.failed, durable=True)
