"""On both transports, a run that code asks for arrives once, after the commit and not before its instant."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling import api
from scheduling.broker import Broker
from scheduling.models import SchedulerExecution
from scheduling.producer.sweeps import publish_claimed
from tests.contract.conftest import Connect
from tests.contract.desk import Desk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def broker(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """Provide the transport that `scheduling.api` uses."""
    made = connect()
    monkeypatch.setattr(api, "own_broker", lambda: made)
    return made


class Rolled(Exception):
    """Rolls a transaction back."""


def test_it_arrives_after_the_commit(broker: Broker) -> None:
    desk = Desk(broker)
    with transaction.atomic():
        made = api.run("tests.noop", key="k")
        if not broker.embedded:
            assert desk.starts_nothing(), "the transaction is still open"
    delivery = desk.start()
    assert (delivery.message.execution_id, delivery.message.attempt) == (made.id, 1)
    assert not api.run("tests.noop", key="k").is_new
    assert desk.starts_nothing()


def test_what_is_rolled_back_never_arrives(broker: Broker) -> None:
    def rolled_back() -> None:
        with transaction.atomic():
            api.run("tests.noop", key="k")
            api.run_many([api.Asked("tests.noop")] * 3)
            raise Rolled

    with pytest.raises(Rolled):
        rolled_back()
    assert Desk(broker).starts_nothing()
    assert publish_claimed(broker, clock.now() + timedelta(hours=1)) == 0
    assert not SchedulerExecution.objects.exists()


def test_a_process_that_dies_after_the_commit_loses_nothing(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    if broker.embedded:
        pytest.skip("nothing is published after the commit")
    with monkeypatch.context() as dies:
        dies.setattr(broker, "publish", lambda *_: set())
        made = api.run("tests.noop", key="k")
    desk = Desk(broker)
    assert desk.starts_nothing()
    assert publish_claimed(broker, clock.now() + timedelta(minutes=1)) == 1
    assert desk.start().message.execution_id == made.id


def test_a_later_run_arrives_at_its_instant(broker: Broker) -> None:
    made = api.run("tests.noop", delay=3600)
    desk = Desk(broker)
    assert publish_claimed(broker, clock.now()) == 0
    assert desk.look() == []
    SchedulerExecution.objects.filter(pk=made.id).update(wake_at=clock.now() - timedelta(seconds=1))
    publish_claimed(broker, clock.now())
    assert desk.start().message.execution_id == made.id


def test_without_a_confirm_it_arrives_once(broker: Broker) -> None:
    desk = Desk(broker)
    made = api.run("tests.noop", confirm=False)
    if not broker.embedded:
        assert SchedulerExecution.objects.get(pk=made.id).published_at is None, "nothing waits for the confirm"
    assert desk.start().message.execution_id == made.id
    # The sweep publishes only what no consumer has started.
    assert publish_claimed(broker, clock.now() + timedelta(minutes=1)) == 0
    assert desk.starts_nothing()


def test_without_a_confirm_a_lost_message_is_published_again(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    if broker.embedded:
        pytest.skip("nothing is published after the commit")
    with monkeypatch.context() as loses:
        loses.setattr(broker, "send", lambda *_: None)
        made = api.run("tests.noop", confirm=False)
    desk = Desk(broker)
    assert desk.starts_nothing()
    assert publish_claimed(broker, clock.now() + timedelta(minutes=1)) == 1
    assert desk.start().message.execution_id == made.id
