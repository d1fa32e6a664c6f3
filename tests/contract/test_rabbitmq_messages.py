"""The tests check three kinds of messages: our own messages, foreign messages and unreadable messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.broker.rabbitmq.messages import ERROR_BYTES
from scheduling.core.outcome import Failed
from scheduling.core.retry import RetryPolicy
from scheduling.execution.run_now import run_now
from scheduling.inbox.sync import sync
from scheduling.models import Attempt, SchedulerExecution, Worker
from tests.contract.conftest import Rabbit
from tests.contract.desk import ERROR, SOON, Desk
from tests.contract.server import Server
from tests.factories import SchedulerFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

NEVER = RetryPolicy(max_retries=0)


def body(**fields: Any) -> bytes:
    """Return the bytes of a message of the original contract, with additional `fields`."""
    worker = Worker.objects.get(name="tests.noop")
    return json.dumps({"type": "worker", "id": worker.pk, "params_scheduler": "{}", **fields}).encode()


def test_own_message_has_all_fields_of_the_original_contract(rabbit: Rabbit, server: Server) -> None:
    execution = run_now(SchedulerFactory(rare=True), rabbit(), params={"since": "ayer ñ"})
    ((properties, raw),) = server.pull(server.name("main"))
    assert properties.delivery_mode == 2
    assert properties.content_type == "application/json"
    assert properties.message_id == f"{execution.pk}:1"
    assert properties.headers == {"x-retry-count": 0, "x-deduplication-header": f"{execution.pk}:1"}
    data = json.loads(raw)
    assert data["params_scheduler"] == '{"since":"ayer ñ"}'
    assert {"type", "id", "scheduler_id", "execution_id", "attempt", "execution_key", "version"} <= set(data)


def test_the_message_of_a_retry_names_the_last_error_and_the_first_failure(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    run_now(SchedulerFactory(rare=True), broker)
    desk = Desk(broker)
    desk.run(ERROR)
    desk.run(ERROR)
    broker.consume({"main": 0})
    server.wait_count(server.name("main"), 1)
    ((properties, raw),) = server.pull(server.name("main"))
    headers = properties.headers
    assert headers["x-retry-count"] == 2
    assert headers["x-last-error"] == "builtins.RuntimeError: no route to host"
    assert headers["x-first-failure-timestamp"] < Attempt.objects.get(number=2).finished_at.isoformat()
    assert json.loads(raw)["attempt"] == 3


def test_failed_message_has_the_fields_of_the_original_contract(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    execution = run_now(SchedulerFactory(rare=True), broker)
    desk = Desk(broker)
    desk.run(ERROR)
    desk.run(ERROR)
    desk.run(ERROR)
    ((properties, raw),) = server.pull(server.topology.failed)
    data = json.loads(raw)
    assert data["failed_reason"] == "builtins.RuntimeError: no route to host"
    assert data["failed_at"].endswith("Z")
    assert (data["retry_count"], data["execution_id"], data["attempt"]) == (2, execution.pk, 3)
    assert properties.headers["x-retry-count"] == 2
    assert properties.delivery_mode == 2  # the message survives a restart of RabbitMQ
    assert "x-death" not in properties.headers


def test_an_oversized_error_does_not_kill_the_connection(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker)
    execution = run_now(SchedulerFactory(rare=True), broker)
    desk.run(Failed("E", "ñ" * 1_000_000))
    desk.run(Failed("E", "\x00" * 1_000_000), NEVER)
    execution.refresh_from_db()
    assert execution.state == "failed"
    ((properties, _),) = server.pull(server.topology.failed)
    assert len(properties.headers["x-last-error"].encode()) <= ERROR_BYTES


def test_message_with_the_four_original_fields_runs(rabbit: Rabbit, server: Server) -> None:
    schedule = SchedulerFactory(rare=True, stay_alive=False)
    desk = Desk(rabbit())
    headers = {"x-request-id": "7", "trace": "4bf92f", "number": 5, "x-last-error": "old", "nested": {"a": "b"}}
    server.publish(body(scheduler_id=schedule.pk, params_scheduler='{"a": 1}'), headers=headers)
    desk.run(ERROR)
    row = SchedulerExecution.objects.get()
    assert row.headers == {"x-request-id": "7", "trace": "4bf92f"}
    assert (row.trigger, row.scheduler_id, row.target_name, row.params) == (
        "message",
        schedule.pk,
        "tests.noop",
        {"a": 1},
    )
    assert row.state == "retrying"
    desk.run()
    row.refresh_from_db()
    assert (row.state, row.attempt) == ("succeeded", 2)
    assert desk.starts_nothing()


def test_an_unknown_schedule_is_left_out(rabbit: Rabbit, server: Server, caplog: pytest.LogCaptureFixture) -> None:
    raw = body(scheduler_id=987654)
    desk = Desk(rabbit())
    server.publish(raw)
    desk.run()
    assert SchedulerExecution.objects.get().scheduler_id is None
    assert "names schedule 987654, which does not exist" in caplog.text


@pytest.mark.parametrize("with_schedule", [True, False])
def test_ids_that_differ_in_case_or_accents_are_different_messages(
    rabbit: Rabbit, server: Server, with_schedule: bool
) -> None:
    """MySQL and MariaDB compare text without case, accents and spaces at the end."""
    raw = body(scheduler_id=SchedulerFactory(rare=True).pk) if with_schedule else body()
    desk = Desk(rabbit())
    identities = ["order-1", "Order-1", "ORDER-1", "ordér-1", "order-1 ", "\uff4frder-1"]
    for identity in identities:
        server.publish(raw, message_id=identity)
        desk.run()
    assert SchedulerExecution.objects.filter(state="succeeded").count() == len(identities)
    for identity in identities:
        server.publish(raw, message_id=identity)
    assert desk.starts_nothing()


@pytest.mark.parametrize("with_schedule", [True, False])
@pytest.mark.parametrize("identity", ["order-1", "x" * 200])
def test_copies_of_a_foreign_message_run_once(
    rabbit: Rabbit, server: Server, identity: str, with_schedule: bool
) -> None:
    raw = body(scheduler_id=SchedulerFactory(rare=True).pk) if with_schedule else body()
    desk = Desk(rabbit())
    for _ in range(3):
        server.publish(raw, message_id=identity)
    desk.run()
    assert desk.starts_nothing()
    row = SchedulerExecution.objects.get()
    assert len(row.execution_key) <= 64
    server.publish(raw, message_id="another")
    server.publish(raw)
    desk.run()
    desk.run()
    assert SchedulerExecution.objects.filter(state="succeeded").count() == 3


def test_retries_of_another_program_count(rabbit: Rabbit, server: Server) -> None:
    death = {"queue": server.name("main"), "reason": "rejected", "count": 2, "exchange": "cron_dlx"}
    wait = {"queue": f"{server.name('main')}_retry", "reason": "expired", "count": 7}
    broker = rabbit()
    server.publish_with_float(body(), "load", 1.5, message_id="old", headers={"x-death": [wait, death]})
    settled = Desk(broker).run(ERROR, SOON)
    assert settled.state is not None
    assert (settled.state.value, settled.retries) == ("failed", 2)


UNREADABLE = [
    b"\xff\xfe not text \x00",
    b"[1, 2]",
    b'{"type": "shell", "id": 1}',
    b"",
    b'{"type": "worker", "id": 1, "params_scheduler": "{\\"a\\": \\"\\\\u0000\\"}"}',
    b'{"type": "worker", "id": 1, "params_scheduler": "{\\"a\\": \\"\\\\ud800\\"}"}',
    b'{"type": "worker", "id": 1, "trigger": []}'.replace(b'"worker"', b'["worker"]'),
    b"x" * 1_100_000,
]


def test_unreadable_message_is_parked_with_its_bytes_and_blocks_no_other(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    desk = Desk(broker)
    for number, raw in enumerate(UNREADABLE):
        server.publish(raw, message_id=f"bad-{number}", headers={"from": "elsewhere", "deep": {"a": [1]}})
    execution = run_now(SchedulerFactory(rare=True), broker)
    desk.run()
    execution.refresh_from_db()
    assert execution.state == "succeeded"
    server.wait_count(server.topology.failed, len(UNREADABLE))
    found = server.pull(server.topology.failed)
    assert [raw for _, raw in found] == UNREADABLE
    for number, (properties, _) in enumerate(found):
        assert properties.message_id == f"bad-{number}"
        assert properties.headers["x-last-error"]
        assert properties.headers["from"] == "elsewhere"


def test_a_message_is_parked_without_headers_that_cannot_be_sent(rabbit: Rabbit, server: Server) -> None:
    Desk(rabbit())
    headers = {f"h{number}": "x" * 3000 for number in range(30)}
    server.publish_with_float(b"?", "load", 1.5, headers=headers)
    server.wait_count(server.topology.failed, 1)
    ((properties, raw),) = server.pull(server.topology.failed)
    assert raw == b"?"
    assert "load" not in properties.headers


def test_unreadable_message_is_in_the_inbox(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    Desk(broker)
    for raw in UNREADABLE:
        server.publish(raw)
    wait_for(lambda: server.count(server.topology.failed) == len(UNREADABLE), "all are parked")
    assert sync(broker, clock.now()).rows == len(UNREADABLE)
    assert sync(broker, clock.now()).rows == 0
    rows = SchedulerExecution.objects.filter(state="failed").order_by("pk")
    assert len(rows) == len(UNREADABLE)
    assert rows[0].params["body"].startswith("\\xff\\xfe not text")
    assert "not JSON" in rows[0].error_message
    assert "'type' must be one of" in rows[2].error_message
    assert {row.target_id for row in rows} == {None}
    assert server.count(server.topology.failed) == len(UNREADABLE)


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="the trigger is written for SQLite")
def test_a_refused_insert_is_not_taken_for_a_copy(rabbit: Rabbit, server: Server) -> None:
    """The message is parked with its bytes. It is acknowledged only if an execution with its key is on record."""
    table = SchedulerExecution._meta.db_table
    desk = Desk(rabbit())
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {table} WHEN NEW.execution_key = 'message-refused' "
            "BEGIN SELECT RAISE(ABORT, 'no such message'); END"
        )
    try:
        server.publish(body(), message_id="refused")
        assert desk.starts_nothing()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER refuse")
    ((_properties, raw),) = server.pull(server.topology.failed)
    assert "no such message" in json.loads(raw)["failed_reason"]
    server.publish(body(), message_id="accepted")
    desk.run()
    assert SchedulerExecution.objects.get().execution_key == "message-accepted"
