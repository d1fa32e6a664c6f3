"""The deaths of a message (the header `x-death`) are kept with the execution that is made for the message."""

from __future__ import annotations

import json
import struct
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.broker.rabbitmq.topology import DELIVERY_LIMIT
from scheduling.core.deaths import Death
from scheduling.execution.death_records import recorded_deaths
from scheduling.execution.publish import publish
from scheduling.execution.run_now import run_now
from scheduling.inbox.actions import republish
from scheduling.inbox.sync import sync
from scheduling.models import SchedulerExecution, Worker
from tests.contract.conftest import Rabbit
from tests.contract.desk import Desk
from tests.contract.server import Server
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def body(**fields: Any) -> bytes:
    """Return the bytes of a message of the original contract, with additional `fields`."""
    worker = Worker.objects.get(name="tests.noop")
    return json.dumps({"type": "worker", "id": worker.pk, "params_scheduler": "{}", **fields}).encode()


def reject(server: Server, queue: str, times: int = 1, requeue: bool = False) -> None:
    """Take a message `times` times and reject it each time."""
    for _ in range(times):
        method = wait_for(lambda: server.channel.basic_get(queue)[0], f"a message in {queue}")
        server.channel.basic_reject(method.delivery_tag, requeue=requeue)


def fields_of(death: Death) -> tuple[str, str, int | None, str, tuple[str, ...]]:
    return death.queue, death.reason, death.count, death.exchange, death.routing_keys


def test_a_foreign_message_keeps_its_deaths_when_it_becomes_an_execution(rabbit: Rabbit, server: Server) -> None:
    """The message was rejected in a queue of another program. From there, RabbitMQ moved it to our main queue."""
    broker = rabbit()
    desk = Desk(broker)
    theirs = f"{server.prefix}theirs"
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": server.name("main")}
    server.channel.queue_declare(theirs, arguments=arguments)
    server.publish(body(), theirs, message_id="moved")
    reject(server, theirs)
    desk.run()
    row = SchedulerExecution.objects.get()
    (death,) = recorded_deaths(row.pk)
    assert fields_of(death) == (theirs, "rejected", 1, "", (theirs,))
    assert death.at is not None
    assert abs(death.at - clock.now()) < timedelta(minutes=5)
    server.delete(theirs)


def test_a_message_over_the_delivery_limit_keeps_its_deaths(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    execution = ManualExecutionFactory(queue="immediate", state="claimed")
    publish([execution], broker)
    queue = server.name("immediate")
    reject(server, queue, DELIVERY_LIMIT + 1, requeue=True)
    server.wait_count(server.topology.failed, 1)
    assert sync(broker, clock.now()).rows == 1
    assert republish([execution.pk], broker, "ann")  # the message leaves the queue, and its deaths stay
    assert [fields_of(death)[:3] for death in recorded_deaths(execution.pk)] == [(queue, "delivery_limit", 1)]


@pytest.mark.parametrize("message_id", ["named", None])
def test_a_message_in_the_failed_queue_without_a_row_keeps_its_deaths(
    message_id: str | None, rabbit: Rabbit, server: Server
) -> None:
    """A message without a message id is published again with an id before its row is made."""
    broker = rabbit()
    broker.declare()
    theirs = f"{server.prefix}theirs"
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": server.topology.failed}
    server.channel.queue_declare(theirs, arguments=arguments)
    server.publish(body(), theirs, message_id=message_id)
    reject(server, theirs)
    server.wait_count(server.topology.failed, 1)
    assert sync(broker, clock.now()).rows == 1
    row = SchedulerExecution.objects.get()
    assert [fields_of(death)[:3] for death in recorded_deaths(row.pk)] == [(theirs, "rejected", 1)]
    server.delete(theirs)


def test_an_unreadable_message_keeps_its_deaths_when_it_is_parked(rabbit: Rabbit, server: Server) -> None:
    """The consumer parks it as a new message, and RabbitMQ starts the header of a new message anew."""
    broker = rabbit()
    desk = Desk(broker)
    deaths = [{"queue": "theirs", "reason": "expired", "count": 7, "routing-keys": ["cron_scheduler"]}]
    server.publish(b"{", message_id="bad", headers={"x-death": deaths})
    assert desk.starts_nothing()
    server.wait_count(server.topology.failed, 1)
    assert sync(broker, clock.now()).rows == 1
    row = SchedulerExecution.objects.get()
    assert [fields_of(death)[:3] for death in recorded_deaths(row.pk)] == [("theirs", "expired", 7)]


def test_a_message_without_deaths_has_no_record(rabbit: Rabbit, server: Server) -> None:
    desk = Desk(rabbit())
    server.publish(body(), message_id="fresh")
    desk.run()
    assert recorded_deaths(SchedulerExecution.objects.get().pk) == ()


BIG = b"l" + struct.pack(">q", 2**63 - 1)
HOSTILE = {
    "a time that no calendar has": b"T" + struct.pack(">Q", 2**62),
    "a huge float": b"d" + struct.pack(">d", 1e300),
    "a number": BIG,
    "an entry that is a number": b"A" + struct.pack(">I", len(BIG)) + BIG,
    "bytes that are no text": b"S" + struct.pack(">I", 3) + b"\xff\x00\x1b",
    "nothing": b"V",
}


def nested(depth: int) -> bytes:
    """Return arrays in arrays, encoded."""
    value = b"A" + struct.pack(">I", 0)
    for _ in range(depth):
        value = b"A" + struct.pack(">I", len(value)) + value
    return value


@pytest.mark.parametrize("readable", [True, False], ids=["readable", "unreadable"])
@pytest.mark.parametrize("name", ["x-death", "other"])
@pytest.mark.parametrize("value", [*HOSTILE.values(), nested(3_000)], ids=[*HOSTILE, "deep arrays"])
def test_a_hostile_header_stops_no_message_behind_it(
    value: bytes, name: str, readable: bool, rabbit: Rabbit, server: Server
) -> None:
    broker = rabbit()
    desk = Desk(broker)
    server.publish_with_value(body() if readable else b"{", name, value, message_id="hostile")
    healthy = run_now(SchedulerFactory(rare=True), broker)
    if readable:
        desk.run()
    desk.run()
    healthy.refresh_from_db()
    assert healthy.state == "succeeded"
    if not readable:
        server.wait_count(server.topology.failed, 1)
        assert sync(broker, clock.now()).rows == 1
    row = SchedulerExecution.objects.exclude(pk=healthy.pk).get()
    assert row.state == ("succeeded" if readable else "failed")
    assert recorded_deaths(row.pk) == ()
