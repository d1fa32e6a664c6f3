"""On both transports, a run that is put off is offered again after a second, to any consumer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.consumer.deferral import Deferral
from scheduling.core.outcome import Deferred, Snoozed
from scheduling.execution.run_now import run_now
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import publish_claimed
from tests.contract.conftest import Connect
from tests.contract.desk import Desk
from tests.factories import HandlerSetFactory, ProcessFactory, SchedulerFactory, WorkerFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

NEW = "tests.only_new_code_knows"


class OldDesk(Desk):
    """A consumer whose code does not know the handler."""

    def defer(self, deliveries: Sequence[Delivery]) -> set[int]:
        return Deferral(RunConfigs(), embedded=self.broker.embedded).defer(deliveries, clock.now())


def of_new_code() -> Scheduler:
    WorkerFactory(name=NEW)
    row: Scheduler = SchedulerFactory(rare=True, handler=NEW, params={})
    return row


def test_a_run_that_an_old_consumer_puts_off_runs_on_a_new_one(connect: Connect) -> None:
    broker = connect()
    ProcessFactory(handler_set=HandlerSetFactory(known={NEW: "new"}))
    run = run_now(of_new_code(), broker)
    old = OldDesk(broker)
    wait_for(lambda: [arrival for arrival in old.look() if arrival.deferred], "the old consumer puts it off")
    run.refresh_from_db()
    assert (run.attempt, run.deferred_at is not None) == (0, True)
    assert publish_claimed(broker, clock.now()) == 0, "it is not offered again at once"
    SchedulerExecution.objects.update(wake_at=clock.now() - timedelta(seconds=1))
    publish_claimed(broker, clock.now())
    delivery = Desk(broker, name="new").start()
    assert (delivery.message.execution_id, delivery.message.attempt, delivery.message.retry_count) == (run.pk, 1, 0)
    run.refresh_from_db()
    assert run.consumer == "new"


def test_an_attempt_that_is_put_off_uses_up_no_retry(connect: Connect) -> None:
    broker = connect()
    run = run_now(SchedulerFactory(rare=True, params={}), broker)
    desk, now = Desk(broker), clock.now()
    desk.run(Deferred(reason="It waits for another consumer.", asked_at=now, wait=timedelta(seconds=1)))
    run.refresh_from_db()
    assert (run.attempt, run.retry_base, run.deferred_at) == (1, 1, now)
    if not broker.embedded:
        assert desk.starts_nothing(), "no message is published at once"
    assert publish_claimed(broker, clock.now()) == 0
    SchedulerExecution.objects.update(wake_at=clock.now() - timedelta(seconds=1))
    publish_claimed(broker, clock.now())
    delivery = desk.start()
    assert (delivery.message.attempt, delivery.message.retry_count) == (2, 0)
    desk.end(delivery)
    run.refresh_from_db()
    assert (run.state, run.deferred_at) == ("succeeded", None)


def test_a_run_that_snoozes_is_offered_again_when_its_time_has_come(connect: Connect) -> None:
    broker = connect()
    run = run_now(SchedulerFactory(rare=True, params={}), broker)
    desk = Desk(broker)
    desk.run(Snoozed("no file yet", timedelta(hours=1)))
    run.refresh_from_db()
    assert (run.attempt, run.retry_base, run.snoozes, run.reason) == (1, 1, 1, "no file yet")
    assert broker.embedded or desk.starts_nothing()
    assert publish_claimed(broker, clock.now()) == 0
    SchedulerExecution.objects.update(wake_at=clock.now() - timedelta(seconds=1))
    publish_claimed(broker, clock.now())
    delivery = desk.start()
    assert (delivery.message.attempt, delivery.message.retry_count) == (2, 0)
    desk.end(delivery)
    run.refresh_from_db()
    assert (run.state, run.snoozes) == ("succeeded", 1)
    assert desk.starts_nothing()
