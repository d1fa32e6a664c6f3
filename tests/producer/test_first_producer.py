"""One producer searches for lost messages: the first one that is alive and reaches the broker."""

from __future__ import annotations

import signal
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.execution.run_now import run_now
from scheduling.models import Process, SchedulerExecution
from scheduling.models.process import HELD
from scheduling.processes.identity import container_id
from scheduling.producer.first_producer import NO_BROKER, searches_here
from tests.contract.server import Server, require
from tests.factories import SchedulerFactory
from tests.support import Commands, wait_for

NOW = clock.now()


def process(name: str = "", **columns: Any) -> Process:
    return Process.objects.create(
        **{
            "container_id": name or container_id(), "kind": "producer", "host": "box", "pid": 7, "started_at": NOW,
            "heartbeat_at": NOW, "info": {NO_BROKER: False},
        } | columns
    )  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({}, False),
        ({"heartbeat_at": NOW - timedelta(minutes=1)}, True),
        ({"stopped_at": NOW}, True),
        ({"kind": "consumer"}, True),
        ({"info": {NO_BROKER: True}}, True),
        ({"info": {HELD: "The database belongs to another deployment."}}, True),
        ({"info": ["no dictionary"]}, False),
    ],
)
def test_an_older_producer_goes_first(other: dict[str, Any], expected: bool) -> None:
    process("older", **other)
    process()
    process("younger")
    assert searches_here(NOW) is expected


@pytest.mark.django_db
def test_if_no_producer_reaches_the_broker_the_first_one_tries() -> None:
    process(info={NO_BROKER: True})
    process("younger", info={NO_BROKER: True})
    assert searches_here(NOW)


@pytest.mark.django_db
def test_without_any_row_it_searches() -> None:
    assert searches_here(NOW)


@pytest.mark.processes
@pytest.mark.rabbitmq
@pytest.mark.django_db(transaction=True)
def test_the_second_producer_goes_on_when_the_first_one_is_killed(commands: Commands) -> None:
    require()
    server = Server()
    try:
        environment = {"BROKER_URL": server.url()}  # with a short lease, a loaded host looks dead for a moment
        first = commands.start("run_scheduler", **environment)
        commands.ready(first)
        wait_for(Process.objects.filter(pid=first.pid).exists, "the first producer has arrived")
        second = commands.start("run_scheduler", **environment)
        commands.ready(second)
        broker = RabbitBroker(server.url(), ladder=(1,))
        broker.declare([])
        schedule = SchedulerFactory(rare=True)

        def lose(count: int) -> None:
            for _ in range(count):
                run_now(schedule, broker)
            server.wait_count(server.name("main"), SchedulerExecution.objects.count())
            server.empty()

        said = "The broker no longer holds"
        lose(3)
        wait_for(lambda: said in commands.log(first), "the first producer publishes the messages again")
        server.wait_count(server.name("main"), 3)
        queued = SchedulerExecution.objects.filter(state="queued", published_at__isnull=False)
        wait_for(lambda: queued.count() == 3, "the first producer has marked them")
        assert said not in commands.log(second)
        commands.stop(first, signal.SIGKILL)
        lose(0)
        wait_for(lambda: said in commands.log(second), "the second producer publishes the messages again")
        broker.close()
    finally:
        commands.end()
        server.close()
