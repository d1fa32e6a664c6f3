"""On both transports, a run waits in its queue at its priority, and so do its retries."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.broker.base import Delivery
from scheduling.broker.rabbitmq.delivery_buffer import MOST_RETURNS, DeliveryBuffer, DeliveryTag
from scheduling.core.messages import TaskMessage, encode
from scheduling.core.outcome import Interrupted
from scheduling.core.queues import work_queues
from scheduling.execution.publish import publish
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.producer.sweeps import publish_claimed
from tests.contract.conftest import Connect, Rabbit
from tests.contract.desk import ERROR, Desk
from tests.contract.server import Server
from tests.factories import ManualExecutionFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def waiting(broker: Broker, queue: str, **columns: Any) -> SchedulerExecution:
    """Make an execution that waits in a work queue, and publish its message."""
    state = "queued" if broker.embedded else "claimed"
    row = ManualExecutionFactory(queue=queue, state=state, wake_at=clock.now(), published_at=None, **columns)
    publish([row], broker)
    return row


def started(desk: Desk, number: int) -> list[int | None]:
    """Wait until so many messages are there, and start them one by one; returns the ids in this order."""

    def all_there() -> bool:
        if desk.broker.embedded:
            return True
        client: Any = desk.broker
        return sum(map(len, client._client.subscription.buffer._waiting.values())) == number

    wait_for(all_there, f"{number} messages arrive")
    return [desk.start().message.execution_id for _ in range(number)]


@pytest.mark.parametrize("queue", ["reports", "reports.high", "main.low", "reports_retry", "9-a.low"])
def test_a_run_starts_from_its_queue_only_and_its_retry_comes_back_to_it(connect: Connect, queue: str) -> None:
    broker = connect()
    row = waiting(broker, queue)
    others, own = Desk(connect(), "main"), Desk(broker, queue)
    assert others.starts_nothing()
    delivery = own.start()
    assert (delivery.message.execution_id, delivery.queue) == (row.pk, queue)
    own.end(delivery, ERROR)
    row.refresh_from_db()
    assert (row.state, row.queue) == ("retrying", queue)
    delivery = own.start()
    assert (delivery.message.execution_id, delivery.message.attempt, delivery.queue) == (row.pk, 2, queue)
    own.end(delivery, Interrupted())  # its next message comes back, too
    delivery = own.start()
    own.end(delivery)
    row.refresh_from_db()
    assert (row.state, row.queue, row.attempt) == ("succeeded", queue, 3)
    assert others.starts_nothing()
    assert own.starts_nothing()


def test_higher_priorities_start_first(connect: Connect) -> None:
    broker = connect()
    rows = [waiting(broker, queue).pk for queue in ("main.low", "main", "main.high", "main.low", "main", "main.high")]
    desk = Desk(broker, *work_queues(["main"]), slots=2)
    assert started(desk, 6) == [rows[number] for number in (2, 5, 1, 4, 0, 3)]


def test_a_low_run_that_has_waited_ten_minutes_longer_starts_first(connect: Connect, request: Any) -> None:
    broker = connect()
    old = clock.now() - timedelta(minutes=11)
    if broker.embedded:
        low = ManualExecutionFactory(queue="main.low", state="queued", wake_at=old)
    else:
        low = ManualExecutionFactory(queue="main.low", state="queued", wake_at=old, published_at=old)
        broker.counts(["main.low"])  # declares the queue
        server: Server = request.getfixturevalue("server")
        body = encode(message_of(low))
        server.publish(body, server.name("main.low"), timestamp=int(time.time()) - 660)
    high = waiting(broker, "main.high")
    desk = Desk(broker, *work_queues(["main"]))
    assert started(desk, 2) == [low.pk, high.pk]


def test_a_queue_that_plain_sql_has_written_hinders_no_other_run(connect: Connect) -> None:
    broker = connect()
    bad = [ManualExecutionFactory(queue=name, state="claimed") for name in ("a b", "é" * 50, "amq.direct", "", ".high")]
    good = ManualExecutionFactory(queue="main", state="claimed")
    SchedulerExecution.objects.update(wake_at=clock.now() - timedelta(minutes=1), published_at=None)
    publish_claimed(broker, clock.now())
    good.refresh_from_db()
    assert good.state == "queued"
    if not broker.embedded:
        assert set(SchedulerExecution.objects.filter(pk__in=[row.pk for row in bad]).values_list("state")) == {
            ("claimed",)
        }
    assert broker.counts([row.queue for row in bad]).ready["main"] == 1
    assert Desk(broker).start().message.execution_id == good.pk


def test_messages_that_a_busy_consumer_holds_go_to_an_idle_one(connect: Connect) -> None:
    busy, idle = connect(), connect()
    queues = work_queues(["main"])
    first = Desk(busy, *queues, name="busy")
    waiting(busy, "main")
    running = first.start()
    low = waiting(busy, "main.low")  # it is prefetched, but the only slot is taken
    other = Desk(idle, *queues, name="idle")
    delivery = other.start()
    assert delivery.message.execution_id == low.pk
    other.end(delivery)
    first.end(running)


@pytest.mark.rabbitmq
def test_each_queue_has_a_prefetch_of_its_own(rabbit: Rabbit) -> None:
    broker, queues = rabbit(), ("main", "mail")
    broker.declare([], *queues)
    for queue in queues:
        for _ in range(10):
            waiting(broker, queue)
    broker.consume({"main": 2, "mail": 7})

    def fetched() -> bool:
        broker.ready(queues, clock.now())  # messages that wait long go back to their queue until the next call
        ready = broker.counts(queues).ready
        return (ready["main"], ready["mail"]) == (8, 3)

    wait_for(fetched, "each queue keeps the rest")


@pytest.mark.rabbitmq
def test_a_named_queue_has_only_the_wait_queues_that_its_retries_need(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    broker.declare([], *work_queues(["reports"]))
    assert server.exists(server.name("reports"))
    assert server.exists(server.name("reports.low"))
    broker.declare([7000], "reports")
    name = server.name("reports")
    wait_for(lambda: server.exists(f"{name}.retry.7"), "it is declared")
    assert not any(server.exists(f"{name}.retry.{seconds}") for seconds in (1, 3, 5))
    assert not server.exists(f"{server.name('main')}_retry.7")
    assert not server.exists(f"{server.name('reports.low')}.retry.7")


@pytest.mark.rabbitmq
def test_a_process_that_only_publishes_declares_the_queue(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit(declare=False)
    row = waiting(broker, "reports.high")
    row.refresh_from_db()
    assert row.state == "queued"
    server.wait_count(server.name("reports.high"), 1)
    server.delete(server.name("reports.high"))
    again = waiting(broker, "reports.high")
    again.refresh_from_db()
    assert again.state == "queued"


def buffered(queue: str, turn: float, ident: int, returns: int = 0) -> Delivery:
    message = TaskMessage(type="worker", id=1, scheduler_id=None, params={}, execution_id=ident, attempt=1)
    tag = DeliveryTag(1, ident, queue, turn=turn, returns=returns, since=time.monotonic() - 10)
    return Delivery(message, tag, queue=queue)


def test_a_message_that_has_gone_back_often_stays() -> None:
    """A quorum queue counts returns, and at its limit it parks the message of a run that never started."""
    buffer = DeliveryBuffer()
    try:
        buffer.put(buffered("main.low", 1.0, 1, MOST_RETURNS))
        assert buffer.age() == 0.0
        buffer.put(buffered("main", 2.0, 2))
        assert buffer.age() > 0.0
        assert [delivery.message.execution_id for delivery in buffer.clear(all_of_them=False)] == [2]
        assert [delivery.message.execution_id for delivery in buffer.clear()] == [1]
    finally:
        buffer.close()


def test_deliveries_are_taken_by_turn_and_keep_the_order_of_their_queue() -> None:
    buffer = DeliveryBuffer()
    try:
        for ident, (queue, turn) in enumerate([("a", 5.0), ("b", 3.0), ("a", 1.0), ("b", 9.0)]):
            buffer.put(buffered(queue, turn, ident))
        taken = buffer.take(2)
        assert [delivery.message.execution_id for delivery in taken] == [1, 0]
        buffer.give_back(taken)
        assert [delivery.message.execution_id for delivery in buffer.take(9)] == [1, 0, 2, 3]
    finally:
        buffer.close()
