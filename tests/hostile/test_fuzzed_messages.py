"""Real consumers and producers get hostile messages. No message is lost, and all healthy executions run once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.inbox.sync import sync
from scheduling.models import SchedulerExecution
from tests.admin.conftest import logged_in
from tests.contract.server import Server
from tests.factories import SchedulerFactory, UserFactory
from tests.hostile import fuzz
from tests.hostile.stream import Stream
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.rabbitmq, pytest.mark.django_db(transaction=True)]

SECONDS_PER_MESSAGE = 0.25
"""All messages have to be processed within this time for each message, and within a minute more."""

PAGES = 50
"""At the end, the pages of so many rows are requested."""

UNSETTLED = ("claimed", "queued", "retrying", "running")


@pytest.fixture
def broker(server: Server) -> Iterator[RabbitBroker]:
    """Provide the project's transport for this test's queues."""
    broker = RabbitBroker(server.url())
    broker.declare([])
    yield broker
    broker.close()


def check_queues(server: Server) -> None:
    """Check that only the failed queue still holds messages. The newest beat is no message of a run."""
    for queue in server.queues():
        if queue not in (server.topology.failed, server.topology.beat.name):
            server.wait_count(queue, 0)


def check_healthy(stream: Stream, directory: Path) -> None:
    """Check that each healthy execution has run exactly once, and has succeeded."""
    for execution in stream.healthy:
        execution.refresh_from_db()
        assert (execution.state, execution.attempt) == ("succeeded", 1), execution.pk
        assert [line.split()[0] for line in marks(directory, execution.pk)] == ["start", "end"], execution.pk


def check_pages(pick: random.Random) -> None:
    """Check that the lists, the dashboard and the pages of some of the rows can be opened."""
    client = logged_in(UserFactory(superuser=True))
    for name in ("scheduling_failedexecution_changelist", "scheduling_schedulerexecution_changelist", "index"):
        assert client.get(reverse(f"admin:{name}"), follow=True).status_code == 200, name
    keys = list(SchedulerExecution.objects.filter(trigger="message").values_list("pk", flat=True))
    for pk in pick.sample(keys, min(len(keys), PAGES)):
        assert client.get(reverse("admin:scheduling_schedulerexecution_change", args=[pk])).status_code == 200, pk


def test_hostile_messages_stop_nothing_and_none_is_lost(
    server: Server, broker: RabbitBroker, commands: Commands, tmp_path: Path
) -> None:
    pick, amount = fuzz.generator("messages"), fuzz.amount(fuzz.MESSAGES, 125)
    schedule = SchedulerFactory(rare=True, handler="tests.mark", params={"directory": str(tmp_path)})
    environment = {"BROKER_URL": server.url(), "CRON_MAX_RETRIES": "0", "CRON_RETRY_DELAY_MS": "1000"}
    processes = [commands.start(*words, **environment) for words in (["run_worker"], ["run_scheduler"])]
    commands.ready(*processes)
    stream = Stream(server, broker, schedule, pick)
    stream.publish(amount)
    unsettled = SchedulerExecution.objects.filter(state__in=UNSETTLED)
    done = wait_for(
        lambda: not server.count(server.name("main")) and not unsettled.exists(),
        "no message and no execution waits",
        60 + amount * SECONDS_PER_MESSAGE,
    )
    assert done
    check_queues(server)
    for process in processes:
        assert process.poll() is None, commands.log(process)[-5000:]
        assert "A turn failed" not in commands.log(process), commands.log(process)
        assert commands.stop(process) == 0
    sync(broker, clock.now())
    lost = stream.lost()
    fuzz.report(
        "messages", hostile=len(stream.hostile), into_the_failed_queue=stream.into_failed, refused=stream.refused,
        healthy=len(stream.healthy), lost=len(lost), rows=SchedulerExecution.objects.count(),
        parked=server.count(server.topology.failed),
    )  # fmt: skip
    assert not lost, [(message.changes, message.properties, message.encoded()[:500]) for message in lost[:5]]
    check_healthy(stream, tmp_path)
    check_pages(pick)
