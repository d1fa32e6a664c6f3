"""Quorum work queues, a change of CRON_QUEUE_TYPE, and queues that cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker import FailedQueueBusy, TopologyMismatch
from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.broker.rabbitmq.topology import WORK_DELIVERY_LIMIT, Topology
from scheduling.core.lifecycle import State
from scheduling.execution.publish import publish
from scheduling.execution.run_now import run_now
from scheduling.inbox.actions import republish
from scheduling.inbox.sync import sync
from scheduling.models import SchedulerExecution
from scheduling.producer import lost_messages
from scheduling.producer.lost_messages import LostMessages
from scheduling.producer.sweeps import publish_claimed, publish_retries
from tests.contract.conftest import RUNGS
from tests.contract.desk import ERROR, Desk, failed
from tests.contract.server import Server
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.parked_messages import original_body
from tests.support import wait_for

pytestmark = [pytest.mark.any_database, pytest.mark.django_db(transaction=True)]

Typed = Callable[[str], RabbitBroker]


@pytest.fixture
def typed(server: Server) -> Iterator[Typed]:
    """Provide a function that makes a transport of a queue type. At the end, close the transports."""
    made: list[RabbitBroker] = []

    def connect(queue_type: str = "quorum") -> RabbitBroker:
        broker = RabbitBroker(server.url(), ladder=RUNGS, queue_type=queue_type, retry_delay_ms=1000)
        made.append(broker)
        broker.declare([])
        return broker

    yield connect
    for broker in made:
        broker.close()


def quorum(server: Server) -> Topology:
    return Topology(server.prefix, queue_type="quorum")


def test_both_types_are_declared_side_by_side(typed: Typed) -> None:
    for queue_type in ("classic", "quorum", "classic", "quorum"):
        counts = typed(queue_type).counts()
        assert counts.ready == {"main": 0, "standalone": 0, "immediate": 0}
        assert (counts.failed, counts.problems) == (0, {})


def test_a_run_a_retry_and_a_failure_on_quorum_queues(typed: Typed, server: Server) -> None:
    broker = typed()
    desk = Desk(broker)
    (row,) = failed(desk)
    server.wait_count(quorum(server).failed, 1)
    assert republish([row.pk], broker, "ann") == [row.pk]
    server.wait_count(quorum(server).failed, 0)
    assert desk.run(ERROR).state is State.RETRYING
    assert desk.run().state is State.SUCCEEDED
    assert desk.starts_nothing()


def test_nothing_is_lost_or_doubled_when_the_type_changes(
    typed: Typed, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows wait in classic queues, and one waits for its retry. Then all processes are new ones."""
    monkeypatch.setattr(lost_messages, "SUSPECT_AFTER", timedelta(0))
    old = typed("classic")
    desk, schedule = Desk(old), SchedulerFactory(rare=True)
    retried = run_now(schedule, old)
    assert desk.run(ERROR).state is State.RETRYING
    old.consume({"main": 0})
    waiting = [run_now(schedule, old) for _ in range(5)]
    main = Topology(server.prefix).work("main")
    server.wait_count(main, 6)  # after a second, the message of the retry is there, too
    old.close()
    new = typed("quorum")
    assert new.left_behind() == {main: 6}
    lost = LostMessages()
    wait_for(lambda: lost.sweep(new, clock.now()) == 5, "the rows are published again")
    later = clock.now() + timedelta(minutes=10)
    wait_for(lambda: publish_retries(new, later) == 1, "the retry is published")
    desk = Desk(new)
    for _ in range(6):
        assert desk.run().state is State.SUCCEEDED
    assert desk.starts_nothing()
    rows = SchedulerExecution.objects.filter(pk__in=[retried.pk, *(row.pk for row in waiting)])
    assert {row.state for row in rows} == {State.SUCCEEDED.value}
    # The way back: what still lies in the classic queue is a copy.
    back = typed("classic")
    assert Desk(back).starts_nothing()


def test_both_types_side_by_side_publish_copies_but_not_for_ever(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """During a rolling change, each producer misses the messages that the other type holds."""
    monkeypatch.setattr(lost_messages, "SUSPECT_AFTER", timedelta(0))
    brokers = [typed("classic"), typed("quorum")]
    publish(ManualExecutionFactory.bulk(10, state="claimed", published_at=None), brokers[0])
    sweeps = [LostMessages(), LostMessages()]

    def quiet() -> bool:
        done = [sweep.sweep(broker, clock.now()) for sweep, broker in zip(sweeps, brokers, strict=True)]
        return sum(done) == 0 and all(broker.counts().ready["main"] >= 10 for broker in brokers)

    wait_for(quiet, "no sweep publishes again")
    assert [broker.counts().ready["main"] for broker in brokers] == [10, 10]
    desks = [Desk(broker) for broker in brokers]
    for number in range(10):
        assert desks[number % 2].run().state is State.SUCCEEDED
    assert all(desk.starts_nothing() for desk in desks)


def test_a_retry_that_cannot_be_published_is_acknowledged_and_started_from_its_row(
    typed: Typed, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quorum queue would park a nacked message."""
    broker = typed()
    desk = Desk(broker)
    row = run_now(SchedulerFactory(rare=True), broker)
    delivery = desk.start()
    with monkeypatch.context() as patched:
        patched.setattr(broker, "_sent", lambda _message: False)
        assert desk.end(delivery, ERROR).state is State.RETRYING
    assert desk.run().state is State.SUCCEEDED
    assert desk.starts_nothing()
    assert server.count(quorum(server).failed) == 0
    row.refresh_from_db()
    assert row.attempt == 2


def test_a_message_over_the_delivery_limit_goes_to_the_failed_queue(typed: Typed, server: Server) -> None:
    broker = typed()
    row = run_now(SchedulerFactory(rare=True), broker)
    name = quorum(server).work("main")
    for _ in range(WORK_DELIVERY_LIMIT + 1):

        def get() -> int:
            method, _properties, _body = server.channel.basic_get(name)
            return 0 if method is None else int(method.delivery_tag)

        server.channel.basic_reject(wait_for(get, "the message is there"), requeue=True)
    server.wait_count(quorum(server).failed, 1)
    assert server.count(name) == 0
    assert sync(broker, clock.now()).rows == 1
    row.refresh_from_db()
    assert (row.state, row.error_class) == (State.FAILED.value, "DeliveryLimit")
    assert republish([row.pk], broker, "ann") == [row.pk]
    assert Desk(broker).run().state is State.SUCCEEDED


def test_messages_that_are_given_back_do_not_come_near_the_limit(typed: Typed, server: Server) -> None:
    """A consumer that pauses or ends gives back what waits in it. RabbitMQ 4.3 does not count this as a delivery."""
    broker = typed()
    run_now(SchedulerFactory(rare=True), broker)
    for _ in range(5):
        broker.consume({"main": 1})
        wait_for(lambda: broker.ready(["main"], clock.now()), "the message arrives")
        broker.consume({"main": 0})
        server.wait_count(quorum(server).work("main"), 1)
    assert Desk(broker).run().state is State.SUCCEEDED


def test_reading_the_failed_queue_often_loses_nothing(typed: Typed, server: Server) -> None:
    """RabbitMQ 4.0 drops a message after 20 deliveries, unless the queue has the limit -1."""
    broker = typed()
    for number in range(5):
        server.publish(original_body(number=number), quorum(server).failed, message_id=f"m{number}")
    server.wait_count(quorum(server).failed, 5)
    for _ in range(25):
        with broker.failed_queue() as session:
            assert [message.message_id for message in session.messages] == [f"m{number}" for number in range(5)]
        server.wait_count(quorum(server).failed, 5)


def test_only_one_process_reads_a_quorum_failed_queue(typed: Typed, server: Server) -> None:
    first, second = typed(), typed()
    server.publish(original_body(), quorum(server).failed, message_id="m")
    server.wait_count(quorum(server).failed, 1)
    with first.failed_queue() as session:
        assert len(session.messages) == 1
        with pytest.raises(FailedQueueBusy), second.failed_queue():
            pass
    with second.failed_queue() as session:
        assert len(session.messages) == 1


def test_a_foreign_message_that_cannot_be_parked_is_parked_by_the_broker(
    typed: Typed, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = typed()
    desk = Desk(broker)
    monkeypatch.setattr(broker._running(), "_park", lambda _body, _properties, _problem, done: done(False))
    broker._running().subscription._unreadable = broker._running()._park
    server.publish(b"{", quorum(server).work("main"), message_id="bad")
    server.wait_count(quorum(server).failed, 1)
    assert desk.starts_nothing()
    assert sync(broker, clock.now()).rows == 1


@pytest.mark.parametrize("queue", ["main", "failed"])
def test_a_queue_of_the_wrong_type_hides_no_other_queue(
    queue: str, typed: Typed, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """The queue under our name was made with another type. A start ends with a sentence; running processes go on."""
    topology = quorum(server)
    wrong = topology.failed if queue == "failed" else topology.work(queue)
    server.channel.queue_declare(wrong, durable=True)
    with closing(RabbitBroker(server.url(), ladder=RUNGS, queue_type="quorum")) as broker:
        with caplog.at_level(logging.WARNING):
            with pytest.raises(TopologyMismatch, match="exists with") as caught:
                broker.declare([], "main")
            for _ in range(3):
                counts = broker.counts()
        assert wrong in str(caught.value)
        assert sorted([*counts.ready, *(["failed"] if counts.failed is not None else [])]) == sorted(
            {"main", "standalone", "immediate", "failed"} - {queue}
        )
        assert server.count(topology.work("standalone")) == 0
        server.channel.queue_declare(topology.work("standalone"), passive=True)  # it was declared all the same
    assert len([record for record in caplog.records if record.name.startswith("scheduling")]) == 1


def test_the_sweep_leaves_out_a_queue_that_cannot_be_counted(
    typed: Typed, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker cannot count it, so its rows are not published again. The rows of the other queues are."""
    monkeypatch.setattr(lost_messages, "SUSPECT_AFTER", timedelta(0))
    broker = typed()
    for queue in ("main", "standalone"):
        publish([ManualExecutionFactory(queue=queue, state="claimed", published_at=None)], broker)
        server.wait_count(quorum(server).work(queue), 1)
        server.delete(quorum(server).work(queue))
    server.channel.queue_declare(quorum(server).work("main"), durable=True)
    lost = LostMessages()
    wait_for(lambda: lost.sweep(broker, clock.now()) == 1, "the standalone row is published again")
    assert [lost.sweep(broker, clock.now()) for _ in range(3)] == [0, 0, 0]
    server.wait_count(quorum(server).work("standalone"), 1)
    assert publish_claimed(broker, clock.now()) == 0
