"""No execution is lost when a connection, a channel or a queue fails."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.broker import BrokerRefused, BrokerUnavailable, get_broker
from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.broker.rabbitmq.io_thread import resolve
from scheduling.broker.rabbitmq.queue_declaration import Held, QueueDeclaration
from scheduling.broker.rabbitmq.watchdog import Watchdog
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Failed
from scheduling.core.setting_values import ConfError
from scheduling.execution.publish import publish
from scheduling.execution.run_now import run_now
from scheduling.models import Attempt, SchedulerExecution
from scheduling.producer.lost_messages import LostMessages
from scheduling.producer.sweeps import sweep
from tests.contract.conftest import RUNGS, Rabbit
from tests.contract.desk import ERROR, Desk
from tests.contract.proxy import Proxy
from tests.contract.server import Server
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def state(execution: SchedulerExecution) -> str:
    execution.refresh_from_db()
    return execution.state


def claimed(**columns: object) -> SchedulerExecution:
    execution = ManualExecutionFactory(state="claimed", published_at=None, **columns)
    return execution


def test_rows_stay_claimed_during_an_outage_and_a_sweep_publishes_them(rabbit: Rabbit, proxy: Proxy) -> None:
    broker = rabbit(proxy.port, patience=2.0)
    proxy.shut()
    execution = claimed()
    assert publish([execution], broker) == 0
    assert state(execution) == "claimed"
    proxy.reopen()
    minutes = count(1)  # a failed sweep delays the next sweep, so the test gives each sweep a later time
    wait_for(lambda: sweep(broker, clock.now() + timedelta(minutes=next(minutes))).claims == 1, "a sweep publishes it")
    assert state(execution) == "queued"
    Desk(broker).run()
    assert state(execution) == "succeeded"


def test_a_lost_connection_is_opened_again_at_once(
    rabbit: Rabbit, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "scheduling")
    broker = rabbit(proxy.port)
    desk = Desk(broker)
    for _ in range(3):
        proxy.cut()
        execution = claimed()
        assert publish([execution], broker) == 1  # the publish waits for the new connection
        desk.run()
        assert state(execution) == "succeeded"
    lost = [record for record in caplog.records if "tried again until" in record.getMessage()]
    back = [record for record in caplog.records if "is back after" in record.getMessage()]
    assert len(lost) == len(back) <= 6  # at most one pair of log lines for each outage and connection
    assert "guest:" not in caplog.text


def test_a_run_outlives_its_connection_and_is_not_started_twice(rabbit: Rabbit, proxy: Proxy, server: Server) -> None:
    broker = rabbit(proxy.port)
    desk = Desk(broker)
    execution = run_now(SchedulerFactory(rare=True), broker)
    delivery = desk.start()
    proxy.cut()
    # RabbitMQ delivers the message again on the new channel. The consumer acknowledges this copy, and the run goes on.
    other = claimed()
    wait_for(lambda: publish([other], broker), "the connection is back")
    desk.run()
    desk.end(delivery)
    assert (state(execution), state(other)) == ("succeeded", "succeeded")
    assert desk.starts_nothing()
    assert Attempt.objects.count() == 2


def test_a_frozen_network_is_an_error_and_publishing_works_afterwards(rabbit: Rabbit, proxy: Proxy) -> None:
    broker = rabbit(proxy.port, patience=0.5)
    proxy.freeze()
    with pytest.raises(BrokerUnavailable):
        broker.publish([TaskMessage("worker", 1, execution_id=1)])
    with pytest.raises(BrokerUnavailable):
        broker.counts()
    proxy.thaw()
    execution = claimed()
    wait_for(lambda: publish([execution], broker), "it works again")


def test_a_queue_may_be_declared_while_another_declaration_of_it_waits_for_its_answer(rabbit: Rabbit) -> None:
    """Several threads share a connection, such as those of a web server that publish to a new queue."""
    client = rabbit()._running()
    answers: list[Future[Any]] = [Future(), Future()]

    class First(QueueDeclaration):
        def _opened(self, channel: Any) -> None:
            super()._opened(channel)
            declare(QueueDeclaration, answers[1])

    def declare(kind: type[QueueDeclaration], answer: Future[Any]) -> None:
        connection, queue = client._publishing.connection, client.topology.failed
        kind(client.loop, connection, client.topology, queue, lambda _name, said: resolve(answer, said), 15.0)

    client.loop.call(lambda: declare(First, answers[0]))
    assert [answer.result(60.0) for answer in answers] == [Held(0, 0), Held(0, 0)]


def test_a_channel_that_the_broker_closed_is_opened_again(rabbit: Rabbit) -> None:
    broker = rabbit()
    desk = Desk(broker)
    run_now(SchedulerFactory(rare=True), broker)
    desk.run()
    subscription = broker._running().subscription
    # RabbitMQ closes a channel after an acknowledgement with an unknown delivery tag. A late acknowledgement has the
    # same effect.
    broker._running().loop.call(lambda: subscription._channel.basic_ack(4711))
    execution = run_now(SchedulerFactory(rare=True), broker)
    desk.run()
    assert state(execution) == "succeeded"
    assert desk.starts_nothing()


def test_an_answer_for_the_old_channel_is_not_sent_on_the_new_channel(rabbit: Rabbit, proxy: Proxy) -> None:
    """Each channel counts its delivery tags from 1. So a tag of the old channel must not be used on the new channel."""
    broker = rabbit(proxy.port)
    desk = Desk(broker, slots=2)
    first = run_now(SchedulerFactory(rare=True), broker)
    delivery = desk.start()
    proxy.cut()
    second = claimed()
    wait_for(lambda: publish([second], broker), "the connection is back")
    wait_for(lambda: broker.ready(["main"], clock.now()), "the second message is delivered")
    desk.end(delivery)  # the tag of this delivery belongs to the old channel
    broker.close()
    new_desk = Desk(rabbit())
    new_desk.run()
    assert (state(first), state(second)) == ("succeeded", "succeeded")


def test_a_queue_deleted_during_consuming_is_declared_again(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker)
    run_now(SchedulerFactory(rare=True), broker)
    desk.run()
    server.delete(server.name("main"))
    execution = claimed()
    wait_for(lambda: publish([execution], broker), "it is published")
    desk.run()
    assert state(execution) == "succeeded"


def test_a_missing_queue_is_declared_by_publishing(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    server.delete(server.name("main"))
    execution = run_now(SchedulerFactory(rare=True), broker)
    assert state(execution) == "queued"
    assert server.count(server.name("main")) == 1


def test_a_process_that_declares_nothing_can_publish(rabbit: Rabbit, server: Server) -> None:
    """The web server declares no queues. The queue can be missing when the web server publishes a message."""
    broker = rabbit(declare=False)
    execution = run_now(SchedulerFactory(rare=True), broker)
    assert state(execution) == "queued"


def test_a_deleted_wait_queue_is_declared_and_nothing_lost(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker)
    execution = run_now(SchedulerFactory(rare=True), broker)
    delivery = desk.start()
    server.delete(f"{server.name('main')}_retry.1")
    desk.end(delivery, ERROR)
    assert execution.pk == desk.start().message.execution_id
    assert state(execution) == "running"


def test_a_deleted_exchange_is_declared_and_nothing_lost(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker)
    execution = run_now(SchedulerFactory(rare=True), broker)
    delivery = desk.start()
    server.channel.exchange_delete(server.topology.exchange)
    desk.end(delivery, ERROR)
    assert desk.start().message.attempt == 2
    assert state(execution) == "running"


def test_all_executions_run_after_all_queues_were_deleted(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    schedule = SchedulerFactory(rare=True)
    desk = Desk(broker)
    retrying = run_now(schedule, broker)
    desk.run(ERROR)
    waiting = [run_now(schedule, broker) for _ in range(20)]
    broker.consume({"main": 0})
    for queue in (*server.topology.base(), *server.topology.rungs("main", RUNGS)):
        server.delete(queue.name)
    lost = LostMessages()
    later = clock.now() + timedelta(seconds=60)
    assert sweep(broker, later, lost_messages=lost).lost == 0  # the first sweep only remembers the missing messages
    assert sweep(broker, later, lost_messages=lost).lost >= 20  # the second sweep publishes them again
    new_desk = Desk(rabbit())
    for _ in (*waiting, retrying):
        new_desk.run()
    assert set(SchedulerExecution.objects.values_list("state", flat=True)) == {"succeeded"}
    assert new_desk.starts_nothing()


def test_messages_that_wait_are_not_published_again(rabbit: Rabbit) -> None:
    broker = rabbit()
    schedule = SchedulerFactory(rare=True)
    for _ in range(10):
        run_now(schedule, broker)
    lost, later = LostMessages(), clock.now() + timedelta(seconds=60)
    assert [lost.sweep(broker, later) for _ in range(3)] == [0, 0, 0]
    assert broker.counts().ready["main"] == 10


def test_a_retry_that_cannot_be_published_comes_from_the_wait_queue(
    rabbit: Rabbit, proxy: Proxy, server: Server
) -> None:
    """If RabbitMQ is low on memory, it blocks the publisher but not the consumer.

    The consumer then rejects the failed run's message, and RabbitMQ moves the message to the wait queue.
    """
    broker = RabbitBroker(server.url(), ladder=(1,), retry_delay_ms=1000)
    try:
        broker.declare([])
        desk = Desk(broker)
        execution = run_now(SchedulerFactory(rare=True), broker)
        delivery = desk.start()
        broker._running().publisher.blocked = "low on memory"
        desk.end(delivery, ERROR)
        execution.refresh_from_db()
        assert (execution.state, execution.published_at) == ("retrying", None)
        again = desk.start()
        assert (again.message.attempt, again.message.retry_count) == (2, 1)
        desk.end(again)
        assert state(execution) == "succeeded"
    finally:
        broker.close()


def test_a_retry_that_comes_too_early_waits(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker)
    execution = run_now(SchedulerFactory(rare=True), broker)
    delivery = desk.start()
    broker._running().publisher.blocked = "low on memory"
    desk.end(delivery, Failed("Busy", "busy", retry_after_ms=3000))
    broker._running().publisher.blocked = ""
    execution.refresh_from_db()
    due = execution.wake_at
    assert due is not None
    # The message would wait for half a minute in the wait queue. The test moves it to the main queue at once.
    server.wait_count(f"{server.name('main')}_retry", 1)
    ((properties, body),) = server.pull(f"{server.name('main')}_retry")
    server.channel.basic_publish("", server.name("main"), body, properties)
    again = desk.start()
    assert clock.now() >= due
    assert again.message.attempt == 2


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"guest:guest@": "guest:hunter2@"}, BrokerRefused, "refuses the user or the password"),
        ({"/?": "/no_such_vhost?"}, BrokerRefused, "has no virtual host 'no_such_vhost'"),
        ({"@127.0.0.1": "@no-such-host.invalid"}, BrokerUnavailable, "cannot be resolved"),
        ({"amqp:": "amqps:"}, BrokerUnavailable, "TLS"),
    ],
)
def test_a_wrong_url_has_an_error_message(
    server: Server, change: dict[str, str], error: type[Exception], words: str
) -> None:
    url = server.url()
    for old, new in change.items():
        url = url.replace(old, new, 1)
        if url == server.url():
            pytest.skip("TEST_BROKER_URL is of another shape")
    if url.startswith("amqps"):
        url = url.replace("127.0.0.1/", "127.0.0.1:5672/")
    broker = RabbitBroker(url, patience=3.0)
    try:
        with pytest.raises(error, match=words) as caught:
            broker.counts()
        assert "hunter2" not in str(caught.value)
    finally:
        broker.close()


def test_a_port_without_a_server_has_an_error_message() -> None:
    broker = RabbitBroker("amqp://ann:hunter2@127.0.0.1:1/", patience=3.0)
    try:
        with pytest.raises(BrokerUnavailable, match=r"Nothing listens at amqp://ann@127\.0\.0\.1:1\."):
            broker.publish([TaskMessage("worker", 1, execution_id=1)])
    finally:
        broker.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("amqp://ann:hunter2@host:port/", "percent-encoded"),
        ("amqp://ann:hunter2@host/?prefix=a b", "prefix="),
        ("amqp://ann:hunter2@host/?heartbeat=never", "heartbeat="),
        ("amqp://ann:hunter2@host/?lazy=1", "unknown parameter 'lazy'"),
        ("amqps://ann:hunter2@host/?cafile=/no/such/file", "certificate files"),
    ],
)
def test_the_error_message_for_an_unusable_url_has_no_password(url: str, words: str) -> None:
    with pytest.raises(ConfError, match=words) as caught:
        get_broker(url)
    assert "hunter2" not in str(caught.value)


def test_a_message_does_not_wait_for_a_busy_slot(rabbit: Rabbit, server: Server) -> None:
    """A message was delivered to a consumer without a free slot. Another consumer then gets the message."""
    busy = rabbit()
    Desk(busy, name="busy")
    execution = run_now(SchedulerFactory(rare=True), busy)
    wait_for(lambda: server.count(server.name("main")) == 0, "the first consumer gets the message")
    other = Desk(rabbit(), name="other")
    other.run()
    execution.refresh_from_db()
    assert (execution.state, execution.consumer) == ("succeeded", "other")
    # The other consumer stops. The first consumer asks for a message, and RabbitMQ delivers messages to it again.
    other.broker.consume({"main": 0})
    following = run_now(SchedulerFactory(rare=True), busy)
    wait_for(lambda: busy.ready(["main"], clock.now()), "the first consumer gets the second message")
    assert state(following) == "queued"


def test_a_retry_without_a_message_is_taken_from_its_row(rabbit: Rabbit, server: Server) -> None:
    """The retry of a crashed run has no message. A consumer starts the retry from the row, before other runs."""
    broker = rabbit()
    for _ in range(5):
        run_now(SchedulerFactory(rare=True), broker)
    now = clock.now()
    lost = ManualExecutionFactory(state="retrying", attempt=1, wake_at=now, published_at=None)
    desk = Desk(broker)
    first = desk.start()
    assert (first.message.execution_id, first.message.attempt) == (lost.pk, 2)
    desk.end(first)
    assert state(lost) == "succeeded"
    desk.run()


def test_a_consumer_without_a_subscription_reconnects(
    rabbit: Rabbit, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Watchdog, "look_seconds", 0.1)  # the watchdog then acts after 0.5 s instead of 5 s
    broker = rabbit()
    desk = Desk(broker)
    run_now(SchedulerFactory(rare=True), broker)
    desk.run()
    subscription = broker._running().subscription
    # RabbitMQ ends the subscription, but the transport does not notice.
    tag = subscription.queues.named(server.name("main")).consumer
    broker._running().loop.call(lambda: subscription._channel.basic_cancel(tag))
    execution = run_now(SchedulerFactory(rare=True), broker)
    desk.run()
    assert state(execution) == "succeeded"
    assert "holds messages and brings none" in caplog.text


def test_a_declaration_on_a_blocked_connection_fails_at_once(rabbit: Rabbit) -> None:
    """RabbitMQ does not read from a blocked connection. So a declaration would get no answer."""
    broker = rabbit()
    broker.declare([])
    broker._running().publisher.blocked = "low on memory"
    with pytest.raises(BrokerUnavailable, match="low on memory"):
        broker.declare([], "immediate")


def test_a_recovered_run_reaches_an_idle_consumer_as_a_message(rabbit: Rabbit, server: Server) -> None:
    """A busy consumer may start it from its row, ahead of what waits. The message is then a copy."""
    broker = rabbit()
    now = clock.now()
    lost = ManualExecutionFactory(
        state="running", attempt=1, started_at=now, wake_at=now - timedelta(seconds=1), consumer="dead"
    )
    assert sweep(broker, now).leases == 1
    server.wait_count(server.name("main"), 1)
    lost.refresh_from_db()
    assert (lost.state, lost.published_at) == ("retrying", now)
    assert sweep(broker, now + timedelta(seconds=20)).retries == 0
    desk = Desk(broker)
    wait_for(lambda: broker.ready(["main"], clock.now()), "the message arrives")
    (delivery,) = broker.take(["main"], 1, clock.now())
    assert (delivery.message.execution_id, delivery.message.attempt) == (lost.pk, 2)
    assert delivery.message.retry_count == 1
    broker.release([delivery])
    desk.run()
    assert state(lost) == "succeeded"
    assert desk.starts_nothing()


def test_the_lost_messages_of_a_long_queue_are_found(rabbit: Rabbit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduling.producer.lost_messages.SLICE", 10)
    broker = rabbit()
    rows = [run_now(SchedulerFactory(rare=True), broker) for _ in range(4)]
    rows += [run_now(rows[0].scheduler, broker) for _ in range(31)]
    desk = Desk(broker, slots=7)
    wait_for(lambda: broker.ready(["main"], clock.now()), "the first messages arrive")
    wait_for(lambda: broker.counts().ready["main"] == 28, "seven messages have arrived")
    for delivery in desk.broker.take(["main"], 7, clock.now()):
        broker.acknowledge(delivery)  # a consumer that loses what it took
    broker.consume({"main": 0})
    lost, later = LostMessages(), clock.now() + timedelta(seconds=60)
    found = [lost.sweep(broker, later) for _ in range(8)]
    assert found == [0, 0, 0, 0, 0, 0, 0, 7]
    assert broker.counts().ready["main"] == 35
    assert [lost.sweep(broker, later + timedelta(seconds=60)) for _ in range(8)] == [0] * 8
