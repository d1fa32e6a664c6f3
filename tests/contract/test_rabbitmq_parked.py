"""The failed queue and the failed inbox contain the same failures. Each failure stays until an operator acts."""

from __future__ import annotations

import json
import os
from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker import Broker, BrokerError, FailedQueueBusy
from scheduling.broker.rabbitmq.declaration import Declared
from scheduling.broker.rabbitmq.failed_queue import RabbitParking
from scheduling.broker.rabbitmq.queue_declaration import Held
from scheduling.broker.rabbitmq.topology import DELIVERY_LIMIT
from scheduling.execution.publish import publish
from scheduling.execution.run_now import run_now
from scheduling.inbox.actions import discard, republish
from scheduling.inbox.sync import sync
from scheduling.models import SchedulerExecution, Worker
from tests.contract.conftest import Rabbit
from tests.contract.desk import ERROR, NEVER, Desk, failed
from tests.contract.proxy import Proxy
from tests.contract.server import Server
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.parked_messages import original_body
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

# The full volume is 10,000. CI goes through all tests on SQLite, and once more on database servers.
MANY = int(os.environ.get("TEST_PARKED_MESSAGES", 1_000 if os.environ.get("TEST_DATABASE_URL") else 3_000))
MIDDLE = MANY // 2


def test_reading_many_messages_keeps_their_order_and_number(rabbit: Rabbit, server: Server) -> None:
    broker, body = rabbit(), json.loads(original_body())
    for number in range(MANY):
        server.publish(json.dumps({**body, "number": number}).encode(), server.topology.failed, message_id=f"m{number}")
    server.wait_count(server.topology.failed, MANY)
    for _ in range(2):
        with broker.failed_queue() as session:
            assert [message.message_id for message in session.messages] == [f"m{number}" for number in range(MANY)]
            assert server.count(server.topology.failed) == 0  # the session has taken all messages out of the queue
        server.wait_count(server.topology.failed, MANY)
    assert sync(broker, clock.now()).rows == MANY
    server.wait_count(server.topology.failed, MANY)
    row = SchedulerExecution.objects.get(execution_key=f"message-m{MIDDLE}")
    assert republish([row.pk], broker, "ann") == [row.pk]
    server.wait_count(server.topology.failed, MANY - 1)
    left = [properties.message_id for properties, _ in server.pull(server.topology.failed)]
    assert left == [f"m{number}" for number in range(MANY) if number != MIDDLE]


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
    # The sync removes the messages of both executions, because the operator has republished or discarded them.
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
    execution = run_now(SchedulerFactory(rare=True), broker)
    delivery = desk.start()
    broker._running().publisher.blocked = "low on memory"
    desk.end(delivery, ERROR, NEVER)
    broker._running().publisher.blocked = ""
    execution.refresh_from_db()
    assert (execution.state, execution.published_at) == ("failed", None)
    assert sync(broker, clock.now()).parked == 0  # in the first 30 seconds, a sync does not park the message
    assert sync(broker, clock.now() + timedelta(seconds=31)).parked == 1
    assert sync(broker, clock.now() + timedelta(seconds=31)).parked == 0
    ((_, raw),) = server.pull(server.topology.failed)
    assert json.loads(raw)["execution_id"] == execution.pk
    # An operator has removed the message by hand. The sync does not park it again, and the execution's row stays.
    assert sync(broker, clock.now() + timedelta(seconds=31)).parked == 0
    execution.refresh_from_db()
    assert execution.state == "failed"


def test_messages_parked_by_the_original_worker_get_rows_and_identities(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    for _ in range(3):
        server.publish(original_body(), server.topology.failed)  # the messages have the same bytes
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


def test_a_sync_does_not_read_an_unchanged_queue(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    failed(Desk(broker), 2)
    with broker.failed_queue():  # this session takes the messages and puts them back
        pass
    server.wait_count(server.topology.failed, 2)
    assert not sync(broker, clock.now(), only_if_changed=True).busy
    holder = rabbit()
    server.publish(original_body(), server.topology.failed)
    with holder.failed_queue():
        assert sync(broker, clock.now()).busy is False  # the session has taken the messages, so the queue looks empty
        with pytest.raises(FailedQueueBusy), broker.failed_queue():
            pass


def test_a_session_ends_when_its_messages_are_back(
    rabbit: Rabbit, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RabbitMQ 4 may report a closed connection before the connection's messages are back in the queue."""
    broker = rabbit()
    for _ in range(3):
        server.publish(original_body(), server.topology.failed)
    server.wait_count(server.topology.failed, 3)
    client = broker._running()
    counts = [0, 1, 2]
    with monkeypatch.context() as patched:
        patched.setattr(
            client, "declare", lambda _queues: Declared({broker.topology.failed: Held(counts.pop(0), consumers=0)})
        )
        with RabbitParking(client) as session:
            session.remove(session.messages[:1])
    assert counts == []
    for _ in range(20):
        with broker.failed_queue() as session:
            assert len(session.messages) == 2
        assert server.count(server.topology.failed) == 2


def moved_by_hand(server: Server, *, keep_properties: bool = True) -> None:
    """Move all messages from the failed queue to the main queue, as RabbitMQ's own tools do."""
    for properties, raw in server.pull(server.topology.failed):
        server.publish(
            raw, **({"headers": properties.headers, "message_id": properties.message_id} if keep_properties else {})
        )


@pytest.mark.parametrize("keep_properties", [True, False])
def test_an_execution_moved_by_hand_runs_and_leaves_the_inbox(
    rabbit: Rabbit, server: Server, keep_properties: bool
) -> None:
    broker = rabbit()
    desk = Desk(broker)
    (execution,) = failed(desk)
    ((properties, raw),) = server.pull(server.topology.failed)
    for _ in range(2):  # the operator publishes the message twice by mistake
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


def test_a_foreign_message_moved_by_hand_leaves_the_inbox_too(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    server.publish(original_body(), server.topology.failed)
    assert sync(broker, clock.now()).rows == 1
    desk = Desk(broker)
    moved_by_hand(server)
    desk.run()
    row = SchedulerExecution.objects.get()
    assert row.state == "succeeded"
    assert sync(broker, clock.now()).rows == 0


def test_a_copy_of_a_failed_message_does_not_run(rabbit: Rabbit, server: Server) -> None:
    """A message that an operator moved out of the failed queue has the field `failed_at`. A copy has no `failed_at`."""
    broker = rabbit()
    execution = run_now(SchedulerFactory(rare=True), broker)
    (properties, raw) = server.pull(server.name("main"))[0]
    desk = Desk(broker)  # created after the pull, because a consumer would have taken the message
    server.publish(raw, headers=properties.headers)
    desk.run(ERROR, NEVER)
    server.publish(raw, headers=properties.headers)
    assert desk.starts_nothing()
    execution.refresh_from_db()
    assert execution.state == "failed"


def test_a_message_over_the_delivery_limit_is_in_the_inbox(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    execution = ManualExecutionFactory(queue="immediate", state="claimed")
    publish([execution], broker)
    delivered = server.channel.consume(server.name("immediate"), inactivity_timeout=5)
    for (method, _, _), _number in zip(delivered, range(DELIVERY_LIMIT + 1), strict=False):
        # The rejection has the same effect as a consumer that crashes on each delivery.
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


def test_an_unreadable_message_runs_when_it_is_readable(rabbit: Rabbit, server: Server) -> None:
    """A consumer parks a message that it cannot read. A republish reads the message again."""
    broker = rabbit()
    desk = Desk(broker)
    newer = json.dumps({"type": "worker", "id": Worker.objects.get(name="tests.noop").pk, "version": 99}).encode()
    server.publish(newer, message_id="newer")
    server.wait_count(server.topology.failed, 1)
    sync(broker, clock.now())
    row = SchedulerExecution.objects.get()
    assert republish([row.pk], broker, "ann") == []  # the message is still unreadable
    row.refresh_from_db()
    assert (row.state, "Update it" in row.error_message) == ("failed", True)
    SchedulerExecution.objects.update(params={"body": newer.decode().replace('"version": 99', '"version": 1')})
    assert republish([row.pk], broker, "ann") == [row.pk]
    desk.run()
    row.refresh_from_db()
    assert (row.state, row.target_name) == ("succeeded", "tests.noop")
    assert server.count(server.topology.failed) == 0


def test_a_message_of_another_database_does_not_belong_to_a_row_with_its_id(rabbit: Rabbit, server: Server) -> None:
    """Executions of two databases can have the same id, but their execution keys differ."""
    broker = rabbit()
    desk = Desk(broker)
    execution = run_now(SchedulerFactory(rare=True), broker)
    desk.run()
    server.publish(
        original_body(execution_id=execution.pk, execution_key="cron-2019-1-1-0-0"),
        server.topology.failed,
        message_id="o",
    )
    found = sync(broker, clock.now())
    assert (found.rows, found.removed) == (1, 0)
    assert SchedulerExecution.objects.get(state="failed").execution_key == "message-o"


def test_a_confirm_that_came_too_late_is_not_a_second_message(rabbit: Rabbit, server: Server) -> None:
    """The confirm came too late: the failed queue has the message, but the row is not marked as parked."""
    broker = rabbit()
    (execution,) = failed(Desk(broker))
    SchedulerExecution.objects.update(published_at=None)
    assert sync(broker, clock.now() + timedelta(seconds=31)).parked == 0
    execution.refresh_from_db()
    assert execution.published_at is not None
    assert server.count(server.topology.failed) == 1
