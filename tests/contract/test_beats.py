"""RabbitMQ keeps the newest beat in a queue of one message, which any number of processes read."""

from __future__ import annotations

from contextlib import closing

import pytest

from scheduling.broker import BrokerUnavailable
from scheduling.broker.rabbitmq import RabbitBroker
from tests.contract.conftest import Rabbit
from tests.contract.server import Server
from tests.support import at_once, wait_for


def test_the_newest_beat_stays_and_any_number_of_processes_read_it(rabbit: Rabbit, server: Server) -> None:
    writer, readers = rabbit(), [rabbit(declare=False) for _number in range(4)]
    assert writer.newest_beat() is None
    for body in (b"one", b"two", b"three"):
        writer.beat(body)
    wait_for(lambda: readers[0].newest_beat() == b"three", "the newest beat is kept")
    found = at_once([reader.newest_beat for reader in readers] * 2)
    assert set(found) <= {b"three", None}  # a reader that is always second gives up, and asks again later
    assert found.count(b"three") >= 4
    server.wait_count(server.topology.beat.name, 1)
    writer.beat(b"four")
    wait_for(lambda: readers[1].newest_beat() == b"four", "it is replaced")


def test_a_deleted_queue_comes_back_with_the_next_beat(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    broker.beat(b"one")
    server.wait_count(server.topology.beat.name, 1)
    server.delete(server.topology.beat.name)
    assert broker.newest_beat() is None
    broker.beat(b"two")
    wait_for(lambda: broker.newest_beat() == b"two", "the queue is there again")


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_each_type_of_queue_keeps_one_beat_for_any_number_of_readings(server: Server, queue_type: str) -> None:
    """One of the addresses does not answer."""
    host, port = server.address
    url = server.url().replace(f"{host}:{port}", f"{host}:1,{host}:{port}")
    with closing(RabbitBroker(url, queue_type=queue_type)) as broker:
        name = broker.topology.beat.name
        assert ("quorum" in name) == (queue_type == "quorum")
        wait_for(lambda: _read(broker) == (), "the broker answers")
        for number in range(5):
            body = b"%d" % number
            broker.beat(body)
            wait_for(lambda: _read(broker) == (body,), "it is kept")  # noqa: B023
        for _number in range(30):  # RabbitMQ 4 drops a message after 20 deliveries, unless the queue has another limit
            assert broker.newest_beat() == b"4"
        server.wait_count(name, 1)


def _read(broker: RabbitBroker) -> tuple[bytes, ...] | None:
    try:
        found = broker.newest_beat()
    except BrokerUnavailable:
        return None
    return () if found is None else (found,)


def test_a_queue_of_another_kind_disturbs_nothing(
    rabbit: Rabbit, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.channel.queue_declare(server.topology.beat.name, durable=True)
    broker = rabbit()
    broker.beat(b"one")
    assert broker.newest_beat() is None
    assert broker.counts().ready["main"] == 0
    assert ["cannot keep the newest beat" in record.message for record in caplog.records] == [True]


def test_a_broker_that_is_away_says_so(rabbit: Rabbit, free_port: int) -> None:
    with pytest.raises(BrokerUnavailable):
        rabbit(free_port, declare=False).newest_beat()
