"""An idle consumer learns of retries without a message from its heartbeat, and sends few statements."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.conf import Conf
from scheduling.consumer.due_retries import EXPECTED_FOR, Rescue
from scheduling.consumer.keepalive import KeepAlive
from scheduling.consumer.supervisor import Supervisor
from scheduling.models import RefusedRow
from scheduling.processes import left_out
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.shutdown import ShutdownRequest
from tests.contract.proxy import Proxy
from tests.contract.server import Server, require
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

LEASE_SECONDS, BEAT_SECONDS = 15, 5.0


class StandIn(DatabaseBroker):
    """A transport outside of the database. It brings nothing."""

    embedded = False
    receiving = True


@pytest.fixture
def rescue(monkeypatch: pytest.MonkeyPatch) -> Rescue:
    monkeypatch.setattr("scheduling.consumer.due_retries.RETRY_POLL_SECONDS", 0.0)
    return Rescue(StandIn(), ["main"])


def keepalive(rescue: Rescue) -> KeepAlive:
    slots: Any = SimpleNamespace(count=2, owned=[], busy=0, over=[], pool=SimpleNamespace(ready=True))
    return KeepAlive(StandIn(), slots, LEASE_SECONDS, ["main"], ServerClock(), LoadedCode(), rescue)


def end_session() -> None:
    """Let the server end this process's connection."""
    own = "pg_backend_pid()" if connection.vendor == "postgresql" else "connection_id()"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {own}")
        (session,) = cursor.fetchone()
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute(f"SELECT pg_terminate_backend({session})" if "pg" in own else f"KILL {session}")
    other.close()


def crashed(**columns: Any) -> Any:
    return ManualExecutionFactory(
        **{"state": "retrying", "attempt": 1, "wake_at": clock.now(), "published_at": None} | columns
    )


def test_an_idle_consumer_sends_at_most_two_statements_in_five_seconds(rescue: Rescue) -> None:
    beats = keepalive(rescue)
    beats.keep(0.0, 0)  # it arrives
    statements: list[str] = []

    def noted(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        statements.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(noted):
        for number in range(1, 13):
            beats.keep(number * BEAT_SECONDS, 0)
            assert not rescue.due(clock.now())
    assert len(statements) <= 0.4 * 12 * BEAT_SECONDS, statements
    assert sum("UPDATE" in statement for statement in statements) == 12


@pytest.mark.parametrize("columns", [{}, {"published_at": clock.now(), "error_class": "Crashed"}])
def test_a_heartbeat_finds_a_retry_without_a_message(rescue: Rescue, columns: dict[str, Any]) -> None:
    beats = keepalive(rescue)
    beats.keep(0.0, 0)
    assert not rescue.due(clock.now())
    row = crashed(**columns)
    for number in (1, 2):
        beats.keep(number * BEAT_SECONDS, 0)
    assert rescue.due(clock.now())
    (found,) = rescue.take(5, clock.now())
    assert found.message.execution_id == row.pk
    assert not rescue.due(clock.now())  # there are no others


def test_a_retry_that_waits_for_its_message_is_not_taken(rescue: Rescue) -> None:
    crashed(published_at=clock.now(), error_class="OSError")
    crashed(wake_at=clock.now() + timedelta(minutes=1))
    crashed(queue="standalone")
    keepalive(rescue).keep(0.0, 0)
    assert not rescue.due(clock.now())


def test_as_long_as_more_retries_wait_it_looks_again(rescue: Rescue) -> None:
    for _ in range(3):
        crashed()
    keepalive(rescue).keep(0.0, 0)
    assert len(rescue.take(2, clock.now())) == 2
    assert rescue.due(clock.now())


def test_its_own_unconfirmed_retry_is_expected(rescue: Rescue) -> None:
    now = clock.now()
    rescue.expect(now + timedelta(seconds=30))
    rescue.expect(now + timedelta(seconds=10))
    assert rescue.due(now + timedelta(seconds=31))
    assert not rescue.due(now + timedelta(seconds=30) + EXPECTED_FOR + timedelta(seconds=1))


def test_without_a_broker_it_looks_each_second(rescue: Rescue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIn, "receiving", False)
    assert rescue.due(clock.now())
    assert not Rescue(DatabaseBroker(), ["main"]).due(clock.now())  # the table itself is the queue


def test_a_heartbeat_learns_of_refused_rows(rescue: Rescue) -> None:
    now = clock.now()
    row = crashed()
    RefusedRow.objects.create(kind="execution", row_id=row.pk, error="a trigger", since=now, tried_at=now)
    beats = keepalive(rescue)
    beats.keep(0.0, 0)
    assert left_out.executions.without(type(row).objects.all()).count() == 0


def test_a_heartbeat_survives_a_connection_that_the_server_has_closed(rescue: Rescue) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has no server that closes connections")
    beats = keepalive(rescue)
    beats.keep(0.0, 0)
    end_session()
    beats.keep(BEAT_SECONDS, 0)
    assert beats.next_clock == 2 * BEAT_SECONDS


def test_an_unconfirmed_retry_reaches_the_rescue() -> None:
    """The supervisor joins the two."""
    supervisor = Supervisor(StandIn(), Conf(), ShutdownRequest())
    now = clock.now()
    supervisor._answers._unconfirmed(now)
    assert supervisor._rescue.due(now)


@pytest.mark.processes
@pytest.mark.rabbitmq
@pytest.mark.parametrize("broker", ["there", "away"])
def test_a_real_consumer_starts_a_retry_without_a_message(commands: Commands, broker: str) -> None:
    require()
    server = Server()
    proxy = Proxy(*server.address)
    try:
        # With the broker, a heartbeat each second finds the retry. Without, the heartbeat of half a minute is too late.
        lease = "3" if broker == "there" else "300"
        url = server.url(proxy.port)
        worker = commands.start("run_worker", BROKER_URL=url, CRON_LEASE_SECONDS=lease)
        commands.ready(worker)
        if broker == "away":
            proxy.shut()
        row = crashed(scheduler=SchedulerFactory(rare=True, handler="tests.noop"))
        ended = type(row).objects.filter(pk=row.pk, state="succeeded")
        wait_for(ended.exists, f"the retry runs while the broker is {broker}", seconds=14)
    finally:
        commands.end()
        proxy.close()
        server.close()
