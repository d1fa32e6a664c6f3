"""A failure that retention removes leaves RabbitMQ's failed queue, too, and never comes back."""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import override_settings
from django.utils import timezone as clock

from scheduling.core.retention import Rule
from scheduling.execution.retention import Pruned, prune
from scheduling.inbox.failed_messages import FailedMessages
from scheduling.inbox.sync import sync
from scheduling.models import SchedulerExecution
from tests.contract.conftest import Rabbit
from tests.contract.desk import Desk, failed
from tests.contract.proxy import Proxy
from tests.contract.server import Server
from tests.execution.retention import keys, left, make_executions, newer
from tests.factories import ManualExecutionFactory
from tests.parked_messages import original_body
from tests.support import Commands, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def age(rows: list[SchedulerExecution], days: int = 10) -> list[int]:
    """Make failures old, and return their primary keys. Their schedule has run since then."""
    then = clock.now() - timedelta(days=days)
    keys = [row.pk for row in rows]
    SchedulerExecution.objects.filter(pk__in=keys).update(finished_at=then, executed_at=then, scheduled_at=then)
    assert rows[0].scheduler is None or newer(rows[0].scheduler)
    return keys


def clean(rabbit: Rabbit, port: int | None = None) -> Pruned:
    messages = FailedMessages(lambda: rabbit(port, patience=1.0, declare=False), clock.now())
    with override_settings(CRON_RETENTION_FAILED_DAYS="5"):
        return prune(clock.now(), released=messages.released)


def test_row_and_message_go_in_the_same_pass(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    rows = failed(Desk(broker), 5)
    old = age(rows[:3])
    assert clean(rabbit).rules == {Rule.FAILED: 3}
    assert not SchedulerExecution.objects.filter(pk__in=old).exists()
    server.wait_count(server.topology.failed, 2)
    assert sync(broker, clock.now()).rows == 0
    assert SchedulerExecution.objects.filter(state="failed").count() == 2


def test_messages_of_other_programs_go_too(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    for number in range(2):
        server.publish(original_body(number=number), server.topology.failed, message_id=f"m{number}")
    server.publish(b"no json", server.topology.failed)
    assert sync(broker, clock.now()).rows == 3
    age(list(SchedulerExecution.objects.all()))
    assert clean(rabbit).rules == {Rule.FAILED: 3}
    server.wait_count(server.topology.failed, 0)
    assert sync(broker, clock.now()).rows == SchedulerExecution.objects.count() == 0


def test_a_row_waits_while_the_broker_is_away(rabbit: Rabbit, proxy: Proxy, server: Server) -> None:
    broker = rabbit()
    old = age(failed(Desk(broker), 2))
    proxy.shut()
    done = clean(rabbit, proxy.port)
    assert (done.executions, done.held) == (0, 2)
    assert SchedulerExecution.objects.filter(pk__in=old, state="discarded").count() == 2
    proxy.reopen()
    assert sync(broker, clock.now()).rows == 0
    assert clean(rabbit).rules == {Rule.FAILED: 2}
    server.wait_count(server.topology.failed, 0)


def test_another_process_that_holds_the_queue_delays_the_removal(rabbit: Rabbit, server: Server) -> None:
    broker = rabbit()
    old = age(failed(Desk(broker), 2))
    with broker.failed_queue():
        assert clean(rabbit).held == 2
    server.wait_count(server.topology.failed, 2)
    assert clean(rabbit).rules == {Rule.FAILED: 2}
    assert not SchedulerExecution.objects.filter(pk__in=old).exists()


@pytest.mark.processes
def test_kills_of_the_command_leave_neither_a_row_nor_a_message(
    rabbit: Rabbit, server: Server, transactional_db: None, tmp_path: Path
) -> None:
    """The command is killed several times. In the end, no row comes back to the inbox."""
    broker = rabbit()
    then = clock.now() - timedelta(days=10)
    times = {"finished_at": then, "executed_at": then, "scheduled_at": then, "published_at": then, "wake_at": None}
    rows = ManualExecutionFactory.bulk(600, state="failed", attempt=1, error_class="E", **times)
    assert rows[0].scheduler is not None
    newer(rows[0].scheduler)
    broker.publish([])  # the connection is open
    for row in rows:
        body = original_body(execution_id=row.pk, execution_key=row.execution_key, id=row.target_id, attempt=1)
        server.publish(body, server.topology.failed)
    server.wait_count(server.topology.failed, 600)
    commands = Commands(tmp_path, BROKER_URL=server.url(), CRON_RETENTION_FAILED_DAYS="5")
    failures = SchedulerExecution.objects.filter(state="failed")
    try:
        process = commands.start("cleanup_executions")
        wait_for(lambda: failures.count() < 600 or process.poll() is not None, "failures are marked")
        commands.stop(process, signal.SIGKILL)
        assert sync_until_free(rabbit) == 0
        code, said = commands.run("cleanup_executions")
        assert code == 0, said
    finally:
        commands.end()
    assert SchedulerExecution.objects.filter(pk__in=[row.pk for row in rows]).count() == 0, said
    server.wait_count(server.topology.failed, 0)
    assert sync(broker, clock.now()).rows == failures.count() == 0


def test_a_refused_login_keeps_only_what_needs_the_broker(
    server: Server, transactional_db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    make_executions("succeeded", 2)
    rows = make_executions("discarded", 2)
    url = server.url().replace("guest:guest@", "guest:wrong@")
    with override_settings(BROKER_URL=url):
        call_command("cleanup_executions")
    said = capsys.readouterr().out
    assert "Deleted 2 execution records" in said
    assert "2 discarded executions stay" in said
    assert left(rows) == keys(rows)


def sync_until_free(rabbit: Rabbit) -> int:
    """Sync as a producer does, and return how many rows were made. The killed process may still hold the queue."""

    def synced() -> bool:
        nonlocal made
        done = sync(rabbit(), clock.now())
        made += done.rows
        return not done.busy

    made = 0
    wait_for(synced, "the queue is free")
    return made
