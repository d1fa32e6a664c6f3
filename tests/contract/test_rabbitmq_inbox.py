"""The page of the failed inbox and its actions work with a real RabbitMQ, and also while no broker answers."""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.core.outcome import Succeeded
from scheduling.inbox import replay_sweep
from scheduling.inbox.sync import sync
from scheduling.models import Replay, SchedulerExecution
from scheduling.producer.sweeps import publish_claimed
from tests.admin.conftest import logged_in, said
from tests.admin.inbox import LIST, ask, confirm, states
from tests.contract.conftest import Rabbit
from tests.contract.desk import Desk, failed
from tests.contract.server import Server
from tests.factories import FailedExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client_of(settings: Any) -> Any:
    """Provide a function that sets BROKER_URL and returns the test client of a superuser."""

    def make(url: str) -> Client:
        settings.BROKER_URL = url
        return logged_in(UserFactory(username="olga", superuser=True))

    return make


def test_the_page_counts_the_messages_and_a_republish_removes_them(
    rabbit: Rabbit, server: Server, client_of: Any
) -> None:
    rows, client = failed(Desk(rabbit()), 3), client_of(server.url())
    assert "The broker's failed queue holds 3 messages." in client.get(LIST).content.decode().replace("&#x27;", "'")
    page = ask(client, "republish_selected", rows[:2])
    assert said(confirm(client, page)) == ["2 were republished."]
    assert states(*rows) == ["queued", "queued", "failed"]
    server.wait_count(server.topology.failed, 1)
    server.wait_count(server.name("main"), 2)
    assert "The broker's failed queue holds 1 message." in client.get(LIST).content.decode().replace("&#x27;", "'")


def test_a_foreign_message_gets_its_row_when_the_page_is_opened(rabbit: Rabbit, server: Server, client_of: Any) -> None:
    rabbit()
    server.publish(b"no <json>", server.topology.failed, message_id="strange")
    server.wait_count(server.topology.failed, 1)
    text = client_of(server.url()).get(LIST).content.decode()
    assert "1 failed execution waits" in text
    assert "UnreadableMessage" in text


def test_emptied_failed_queue_is_read_once_and_not_on_each_visit(
    rabbit: Rabbit, server: Server, client_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading 10,000 messages takes almost one second, so the page must not read the failed queue on each visit."""
    failed(Desk(rabbit()), 3)
    client = client_of(server.url())
    server.channel.basic_get(server.topology.failed, auto_ack=True)  # an operator removes a message by hand
    server.wait_count(server.topology.failed, 2)
    reads = []
    parked = RabbitBroker.failed_queue
    monkeypatch.setattr(RabbitBroker, "failed_queue", lambda broker: reads.append(1) or parked(broker))
    for _ in range(3):
        assert "holds 2 messages" in client.get(LIST).content.decode()
    assert len(reads) == 1
    for name in ("strange", "stranger"):
        server.publish(b"no <json>", server.topology.failed, message_id=name)
    server.wait_count(server.topology.failed, 4)
    assert "UnreadableMessage" in client.get(LIST).content.decode()
    assert len(reads) == 2


def test_without_a_broker_the_page_works_and_says_so(client_of: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # the socket does not listen, so connections to this port are refused
        client = client_of(f"amqp://guest:guest@127.0.0.1:{taken.getsockname()[1]}/")
        rows = FailedExecutionFactory.create_batch(3)
        for query in ("", "?group=error"):
            text = client.get(LIST + query).content.decode()
            assert "The broker cannot be asked for its failed queue" in text
            assert "3 failed executions wait" in text
            assert "guest:guest" not in text
        first, second = rows[:2]
        assert said(confirm(client, ask(client, "republish_selected", [first]))) == ["1 was republished."]
        assert said(confirm(client, ask(client, "discard_selected", [second]), reason="known")) == ["1 was discarded."]
        # The republished execution stays claimed until the broker answers again. Then a producer publishes it.
        assert states(*rows) == ["claimed", "discarded", "failed"]


def test_a_spread_republish_publishes_one_message_after_another(rabbit: Rabbit, server: Server, client_of: Any) -> None:
    broker = rabbit()
    rows, client = failed(Desk(broker), 3), client_of(server.url())
    assert said(confirm(client, ask(client, "republish_selected", rows), minutes="30")) == ["3 were republished."]
    server.wait_count(server.topology.failed, 0)
    detail = client.get(reverse("admin:scheduling_schedulerexecution_change", args=[rows[2].pk])).content.decode()
    assert "Waiting for its time: due in" in detail
    wakes = list(SchedulerExecution.objects.order_by("pk").values_list("wake_at", flat=True))
    assert [late - wakes[0] for late in wakes] == [timedelta(minutes=minutes) for minutes in (0, 10, 20)]
    sent = []
    for minutes in (0, 5, 11, 15, 21, 60):
        publish_claimed(broker, wakes[0] + timedelta(minutes=minutes, seconds=1))
        sent.append(SchedulerExecution.objects.filter(state="queued").count())
        server.wait_count(server.name("main"), sent[-1])
    assert sent == [1, 1, 2, 2, 3, 3]


def test_a_replay_with_the_broker(rabbit: Rabbit, server: Server, client_of: Any) -> None:
    broker = rabbit()
    desk = Desk(broker)
    rows, client = failed(desk, 4), client_of(server.url())
    confirm(client, ask(client, "republish_selected", rows), canary="1")
    server.wait_count(server.topology.failed, 3)
    assert replay_sweep.sweep(broker, clock.now()) == 0
    desk.run(Succeeded())
    assert replay_sweep.sweep(broker, clock.now()) == 3
    assert states(*rows) == ["succeeded", "queued", "queued", "queued"]
    assert Replay.objects.get().state == "done"
    assert sync(broker, clock.now()).removed == 3
    assert server.count(server.topology.failed) == 0
    for _ in range(3):
        desk.run(Succeeded())
    assert states(*rows) == ["succeeded"] * 4
    assert desk.starts_nothing()
