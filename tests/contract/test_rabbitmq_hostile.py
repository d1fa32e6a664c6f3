"""An invalid message is recorded or parked with a reason, and the next valid message runs."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.core.lifecycle import State
from scheduling.core.messages import encode
from scheduling.execution.run_now import run_now
from scheduling.inbox.sync import sync
from scheduling.models import SchedulerExecution, Worker
from tests.contract.conftest import RUNGS, Rabbit
from tests.contract.desk import Desk
from tests.contract.server import Server
from tests.factories import SchedulerFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

DEEP = '{"x":' + "[" * 970 + "]" * 970 + "}"

HOSTILE: dict[str, dict[str, Any]] = {
    "an instant before the first year": {"scheduled_at": "0001-01-01T00:00:00+14:00"},
    "an instant after the last year": {"scheduled_at": "9999-12-31T23:59:59-14:00"},
    "deep params": {"params_scheduler": DEEP},
    "params that MariaDB refuses": {"params_scheduler": '{"x":' + "[" * 33 + "]" * 33 + "}"},
    "not a number": {"params_scheduler": '{"x":NaN}'},
    "infinity": {"params_scheduler": '{"x":1e999}'},
    "a whole number of 80 bits": {"params_scheduler": '{"x":1208925819614629174706176}'},
    "NUL": {"params_scheduler": '{"x":"\\u0000"}'},
    "a row that is not there": {"execution_id": 2**62, "execution_key": "cron-1", "attempt": 1},
    "an attempt that no column holds": {"execution_id": 1, "execution_key": "cron-1", "attempt": 2**63 - 1},
    "a negative attempt": {"execution_id": 1, "execution_key": "cron-1", "attempt": -1},
    "a version to come": {"version": 99},
}


def body(**fields: Any) -> bytes:
    worker = Worker.objects.get(name="tests.noop")
    return json.dumps({"type": "worker", "id": worker.pk, "params_scheduler": "{}", **fields}).encode()


@pytest.mark.parametrize("fields", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_message_is_parked_and_the_next_one_runs(
    fields: dict[str, Any], rabbit: Rabbit, server: Server
) -> None:
    broker = rabbit()
    desk = Desk(broker)
    server.publish(body(**fields), server.name("main"))
    healthy = run_now(SchedulerFactory(rare=True), broker)
    assert desk.run() is not None
    healthy.refresh_from_db()
    assert healthy.state == State.SUCCEEDED.value
    server.wait_count(server.topology.failed, 1)
    sync(broker, clock.now())
    row = SchedulerExecution.objects.exclude(pk=healthy.pk).get()
    assert row.state == State.FAILED.value
    assert row.error_message


@pytest.mark.parametrize("fields", [{"scheduled_at": "0001-01-01T00:00:00+14:00"}, {"params_scheduler": DEEP}])
def test_a_hostile_message_in_the_failed_queue_gets_its_row(
    fields: dict[str, Any], rabbit: Rabbit, server: Server
) -> None:
    broker = rabbit()
    broker.declare()
    server.publish(body(**fields, failed_at="0001-01-01T00:00:00+14:00"), server.topology.failed)
    server.wait_count(server.topology.failed, 1)
    assert sync(broker, clock.now()).rows == 1
    row = SchedulerExecution.objects.get()
    assert (row.state, row.error_class) == (State.FAILED.value, "UnreadableMessage")


def test_a_message_whose_id_belongs_to_another_row_starts_nothing(rabbit: Rabbit, server: Server) -> None:
    """After a database is restored from a backup, a new row can get an id that an old message already contains."""
    broker = rabbit()
    execution = run_now(SchedulerFactory(rare=True), broker)
    ((_properties, own),) = server.pull(server.name("main"))
    other = Worker.objects.get(name="tests.typed")
    stale = json.loads(own) | {"id": other.pk, "params_scheduler": '{"what":"STALE"}'}
    for changed in (stale, json.loads(own) | {"execution_key": "cron-2020-1-1-0-0"}):
        server.publish(json.dumps(changed).encode(), server.name("main"))
    server.publish(own, server.name("main"))
    delivery = Desk(broker).start()
    execution.refresh_from_db()
    assert delivery.message.id == execution.target_id
    assert delivery.message.params == execution.params
    assert execution.attempt == 1
    server.wait_count(server.topology.failed, 2)


def test_params_come_from_the_row(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    execution = run_now(SchedulerFactory(rare=True), broker, params={"since": 1})
    ((_properties, own),) = server.pull(server.name("main"))
    server.publish(json.dumps(json.loads(own) | {"params_scheduler": '{"since":2}'}).encode(), server.name("main"))
    assert Desk(broker).start().message.params == {"since": 1}
    execution.refresh_from_db()
    assert execution.state == State.RUNNING.value


@pytest.mark.parametrize("message_id", [b"\xff" * 200, b"a\xff", "a\x00b", "a" * 255])
@pytest.mark.parametrize("queue", ["main", "failed"])
def test_any_message_id_is_recorded(queue: str, message_id: Any, rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker)
    name = server.topology.failed if queue == "failed" else server.name("main")
    server.publish(b"{", name, message_id=message_id, headers={b"\xff": "a name that is no text"})
    assert desk.starts_nothing()
    server.wait_count(server.topology.failed, 1)
    assert sync(broker, clock.now()).rows == 1
    assert sync(broker, clock.now()).rows == 0
    assert SchedulerExecution.objects.get().state == State.FAILED.value


def test_a_message_with_the_key_of_a_row_and_another_target_stays_in_the_inbox(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    execution = run_now(SchedulerFactory(rare=True), broker)
    ((_properties, own),) = server.pull(server.name("main"))
    other = Worker.objects.get(name="tests.typed")
    server.publish(json.dumps(json.loads(own) | {"id": other.pk}).encode(), server.name("main"), message_id="theirs")
    server.publish(own, server.name("main"))
    assert Desk(broker).run() is not None
    server.wait_count(server.topology.failed, 1)
    sync(broker, clock.now())
    server.wait_count(server.topology.failed, 1)
    assert SchedulerExecution.objects.exclude(pk=execution.pk).get().execution_key == "message-theirs"


def test_a_message_that_differs_from_a_running_execution_is_no_copy(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker, slots=2)
    run_now(SchedulerFactory(rare=True), broker)
    delivery = desk.start()
    body = json.loads(encode(delivery.message)) | {"execution_key": "cron-2020-1-1-0-0"}
    server.publish(json.dumps(body).encode(), server.name("main"), message_id="theirs")
    wait_for(lambda: desk.look() or server.count(server.topology.failed), "the message is parked")
    server.wait_count(server.topology.failed, 1)
    desk.end(delivery)


class Unconfirmed(RabbitBroker):
    """A transport whose messages RabbitMQ never confirms, for example because of a memory alarm."""

    def _sent(self, message: Any) -> bool:
        return False


def test_a_foreign_message_that_cannot_be_parked_comes_back(rabbit: Rabbit, server: Server) -> None:
    rabbit()
    broker = Unconfirmed(server.url(), ladder=RUNGS)
    desk = Desk(broker)
    server.publish(body(execution_id=2**62, execution_key="cron-1", attempt=1), server.name("main"))
    wait_for(lambda: desk.look(), "the message arrives")
    server.wait_count(f"{server.name('main')}_retry", 1)
    broker.close()


def test_an_alarm_of_the_server_is_known_until_it_is_over(rabbit: Rabbit, server: Server) -> None:
    rabbit()
    broker = RabbitBroker(server.url(), ladder=RUNGS)
    broker.declare()
    assert broker.alarm is None
    assert broker._client is not None
    publisher = broker._client.publisher
    frame = SimpleNamespace(method=SimpleNamespace(reason="low on disk"))
    publisher._alarm(None, frame)  # as pika calls it: an alarm of the server would stop all other tests
    assert broker.alarm is not None
    assert broker.alarm.why == "RabbitMQ takes no messages: low on disk (an alarm of its memory or disk)."
    assert broker.alarm.seconds >= 0
    publisher._all_clear(None, None)
    assert broker.alarm is None
    broker.close()
