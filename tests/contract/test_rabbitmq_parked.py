"""The failed queue keeps, the inbox finds: both stay in step, and nothing leaves by itself."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker import Broker, BrokerError, ParkedBusy
from scheduling.broker.rabbitmq.parking import RabbitParking
from scheduling.broker.topology import DELIVERY_LIMIT
from scheduling.core.retry import RetryPolicy
from scheduling.dispatch import publish, run_now
from scheduling.failed import discard, republish
from scheduling.models import SchedulerExecution, Worker
from scheduling.parked import sync
from tests.contract.conftest import Rabbit
from tests.contract.desk import ERROR, Desk
from tests.contract.proxy import Proxy
from tests.contract.server import Server
from tests.support import queued, scheduler, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

NEVER = RetryPolicy(max_retries=0)


def failed(desk: Desk, count: int = 1) -> list[SchedulerExecution]:
    schedule = scheduler("tests.noop")
    rows = [run_now(schedule, desk.broker) for _ in range(count)]
    for _ in rows:
        desk.run(ERROR, NEVER)
    for row in rows:
        row.refresh_from_db()
    return rows


def seeds_body(**fields: object) -> bytes:
    """What the seeds' worker parks: no identity at all."""
    worker = Worker.objects.get(name="tests.noop")
    task = {"type": "worker", "id": worker.pk, "scheduler_id": 16, "params_scheduler": "{}"}
    end = {"failed_at": "2025-12-12T12:03:39.002Z", "failed_reason": "Connection timeout", "retry_count": 3}
    return json.dumps({**task, **end, **fields}).encode()


def test_a_look_at_ten_thousand_keeps_order_and_count(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    for number in range(10_000):
        server.publish(seeds_body(number=number), server.topology.failed, message_id=f"m{number}")
    server.wait_count(server.topology.failed, 10_000)
    for _ in range(2):
        with broker.parked() as session:
            assert [each.message_id for each in session.messages] == [f"m{number}" for number in range(10_000)]
            assert server.count(server.topology.failed) == 0  # held
        server.wait_count(server.topology.failed, 10_000)
    assert sync(broker, clock.now()).rows == 10_000
    server.wait_count(server.topology.failed, 10_000)
    row = SchedulerExecution.objects.get(execution_key="message-m5000")
    assert republish([row.pk], broker, "ann") == [row.pk]
    server.wait_count(server.topology.failed, 9_999)
    left = [properties.message_id for properties, _ in server.pull(server.topology.failed)]
    assert left == [f"m{number}" for number in range(10_000) if number != 5000]


def test_republish_takes_out_exactly_its_own_message(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    rows = failed(Desk(broker), 5)
    assert republish([rows[2].pk], broker, "ann") == [rows[2].pk]
    left = [json.loads(raw)["execution_id"] for _, raw in server.pull(server.topology.failed)]
    assert left == [row.pk for row in rows if row is not rows[2]]


def test_the_inbox_works_while_the_broker_is_away(rabbit: Rabbit, proxy: Proxy, server: Server) -> None:
    broker = rabbit(proxy.port, patience=1.0)
    first, second = failed(Desk(broker), 2)
    proxy.shut()
    assert republish([first.pk], broker, "ann") == [first.pk]
    assert discard([second.pk], "ann", "known", broker=broker) == [second.pk]
    first.refresh_from_db()
    assert first.state == "claimed"
    proxy.reopen()
    # The sync pass takes out what an operator has dealt with.
    assert wait_for(lambda: _removed(broker), "the broker is back") == 2
    assert server.count(server.topology.failed) == 0


def _removed(broker: Broker) -> int:
    try:
        return sync(broker, clock.now()).removed
    except BrokerError:
        return 0


def test_a_failure_that_could_not_be_parked_is_parked_later(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker)
    execution = run_now(scheduler("tests.noop"), broker)
    delivery = desk.start()
    broker._running().publisher.blocked = "low on memory"
    desk.end(delivery, ERROR, NEVER)
    broker._running().publisher.blocked = ""
    execution.refresh_from_db()
    assert (execution.state, execution.published_at) == ("failed", None)
    assert sync(broker, clock.now()).parked == 0  # its consumer may still be at it
    assert sync(broker, clock.now() + timedelta(seconds=31)).parked == 1
    assert sync(broker, clock.now() + timedelta(seconds=31)).parked == 0
    ((_, raw),) = server.pull(server.topology.failed)
    assert json.loads(raw)["execution_id"] == execution.pk
    # Taken out by hand: it is not parked again, and its row stays for an operator.
    assert sync(broker, clock.now() + timedelta(seconds=31)).parked == 0
    execution.refresh_from_db()
    assert execution.state == "failed"


def test_what_the_seeds_worker_left_gets_rows_and_identities(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    for _ in range(3):
        server.publish(seeds_body(), server.topology.failed)  # equal to the last byte
    assert sync(broker, clock.now()).rows == 3
    assert sync(broker, clock.now()).rows == 0
    rows = list(SchedulerExecution.objects.all())
    assert len({row.execution_key for row in rows}) == 3
    assert {(row.state, row.error_message, row.scheduler_id) for row in rows} == {
        ("failed", "Connection timeout", None)
    }
    assert republish([rows[1].pk], broker, "ann")
    server.wait_count(server.topology.failed, 2)
    Desk(broker).run()
    rows[1].refresh_from_db()
    assert rows[1].state == "succeeded"


def test_an_open_inbox_does_not_read_what_has_not_changed(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    failed(Desk(broker), 2)
    with broker.parked():  # so that any reading is refused
        pass
    server.wait_count(server.topology.failed, 2)
    assert not sync(broker, clock.now(), only_if_changed=True).busy
    holder = rabbit()
    server.publish(seeds_body(), server.topology.failed)
    with holder.parked():
        assert sync(broker, clock.now()).busy is False  # it looks empty while somebody holds it
        with pytest.raises(ParkedBusy), broker.parked():
            pass


def test_a_look_ends_when_its_messages_are_back(rabbit: Rabbit, server: Server) -> None:
    """RabbitMQ 4 closes a connection before what it held is in the queue again."""
    broker = rabbit()
    for _ in range(3):
        server.publish(seeds_body(), server.topology.failed)
    server.wait_count(server.topology.failed, 3)
    engine = broker._running()
    counts = [0, 1, 2]
    looks = RabbitParking(
        engine.loop, broker.address, broker.topology, publish=engine.send, ready=lambda: counts.pop(0), patience=5.0
    )
    with looks as session:
        session.remove(session.messages[:1])
    assert counts == []
    for _ in range(20):
        with broker.parked() as session:
            assert len(session.messages) == 2
        assert server.count(server.topology.failed) == 2


def moved_by_hand(server: Server, *, keep_properties: bool = True) -> None:
    """As with RabbitMQ's own tools: out of the failed queue, into the main one."""
    for properties, raw in server.pull(server.topology.failed):
        server.publish(
            raw, **({"headers": properties.headers, "message_id": properties.message_id} if keep_properties else {})
        )


@pytest.mark.parametrize("keep_properties", [True, False])
def test_moved_by_hand_it_runs_and_leaves_the_inbox(rabbit: Rabbit, server: Server, keep_properties: bool) -> None:
    broker = rabbit()
    desk = Desk(broker)
    (execution,) = failed(desk)
    ((properties, raw),) = server.pull(server.topology.failed)
    for _ in range(2):  # twice, by mistake
        server.publish(raw, **({"headers": properties.headers} if keep_properties else {}))
    delivery = desk.start()
    assert (delivery.message.execution_id, delivery.message.attempt, delivery.message.retry_count) == (
        execution.pk,
        2,
        0,
    )
    desk.end(delivery)
    assert desk.starts_nothing()
    execution.refresh_from_db()
    assert (execution.state, execution.attempt) == ("succeeded", 2)


def test_a_strangers_failure_moved_by_hand_leaves_the_inbox_too(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    server.publish(seeds_body(), server.topology.failed)
    assert sync(broker, clock.now()).rows == 1
    desk = Desk(broker)
    moved_by_hand(server)
    desk.run()
    row = SchedulerExecution.objects.get()
    assert row.state == "succeeded"
    assert sync(broker, clock.now()).rows == 0


def test_a_plain_copy_of_a_failed_run_stays_a_copy(rabbit: Rabbit, server: Server) -> None:
    """Redelivered after its failure was recorded: only what says `failed_at` was moved by hand."""
    broker = rabbit()
    execution = run_now(scheduler("tests.noop"), broker)
    (properties, raw) = server.pull(server.name("main"))[0]
    desk = Desk(broker)  # not before: it would have the message already
    server.publish(raw, headers=properties.headers)
    desk.run(ERROR, NEVER)
    server.publish(raw, headers=properties.headers)
    assert desk.starts_nothing()
    execution.refresh_from_db()
    assert execution.state == "failed"


def test_what_the_broker_gives_up_bringing_fails_visibly(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    (execution,) = queued(scheduler("tests.noop"), queue="immediate", state="claimed")
    publish([execution], broker)
    brought = server.channel.consume(server.name("immediate"), inactivity_timeout=5)
    for (method, _, _), _number in zip(brought, range(DELIVERY_LIMIT + 1), strict=False):
        # What a consumer does that dies of the message each time.
        server.channel.basic_reject(method.delivery_tag, requeue=True)
    server.channel.cancel()
    server.wait_count(server.topology.failed, 1)
    assert sync(broker, clock.now()).rows == 1
    execution.refresh_from_db()
    assert (execution.state, execution.error_class) == ("failed", "DeliveryLimit")
    assert republish([execution.pk], broker, "ann")
    assert server.count(server.topology.failed) == 0
    Desk(broker, "immediate").run()
    execution.refresh_from_db()
    assert execution.state == "succeeded"


def test_an_unreadable_message_runs_once_somebody_reads_it(rabbit: Rabbit, server: Server) -> None:
    """Parked by a consumer of an older version; republish tries again to read it."""
    broker = rabbit()
    desk = Desk(broker)
    newer = json.dumps({"type": "worker", "id": Worker.objects.get(name="tests.noop").pk, "version": 99}).encode()
    server.publish(newer, message_id="newer")
    server.wait_count(server.topology.failed, 1)
    sync(broker, clock.now())
    row = SchedulerExecution.objects.get()
    assert republish([row.pk], broker, "ann") == []  # still not
    row.refresh_from_db()
    assert (row.state, "Update it" in row.error_message) == ("failed", True)
    SchedulerExecution.objects.update(params={"body": newer.decode().replace("99", "1")})
    assert republish([row.pk], broker, "ann") == [row.pk]
    desk.run()
    row.refresh_from_db()
    assert (row.state, row.target_name) == ("succeeded", "tests.noop")
    assert server.count(server.topology.failed) == 0


def test_messages_of_another_database_are_not_taken_for_ours(rabbit: Rabbit, server: Server) -> None:
    """A database set up anew gives out the old numbers: the key tells the executions apart."""
    broker = rabbit()
    desk = Desk(broker)
    execution = run_now(scheduler("tests.noop"), broker)
    desk.run()
    server.publish(
        seeds_body(execution_id=execution.pk, execution_key="cron-2019-1-1-0-0"), server.topology.failed, message_id="o"
    )
    found = sync(broker, clock.now())
    assert (found.rows, found.removed) == (1, 0)
    assert SchedulerExecution.objects.get(state="failed").execution_key == "message-o"


def test_a_confirm_that_came_too_late_is_not_a_second_message(rabbit: Rabbit, server: Server) -> None:
    """An alarm held the failed message up: it is in the queue, and its row does not know."""
    broker = rabbit()
    (execution,) = failed(Desk(broker))
    SchedulerExecution.objects.update(published_at=None)
    assert sync(broker, clock.now() + timedelta(seconds=31)).parked == 0
    execution.refresh_from_db()
    assert execution.published_at is not None
    assert server.count(server.topology.failed) == 1
