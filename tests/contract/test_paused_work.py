"""On both transports, paused runs wait, nothing is lost, and they go on when the pause ends."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker import Broker, Delivery
from scheduling.consumer.deferral import Deferral
from scheduling.execution.run_now import run_now
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Pause, SchedulerExecution
from scheduling.producer.ended_pauses import LATE_ARRIVALS, wake_after_pauses
from scheduling.producer.sweeps import publish_claimed
from tests.contract.conftest import Connect
from tests.contract.desk import ERROR, Desk
from tests.factories import LimitPlaceFactory, ManualExecutionFactory, PauseFactory, SchedulerFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


class PausingDesk(Desk):
    """A consumer that keeps to pauses, and reads them anew for each run."""

    def defer(self, deliveries: Sequence[Delivery]) -> set[int]:
        return Deferral(RunConfigs(), embedded=self.broker.embedded).defer(deliveries, clock.now())


def state(row: SchedulerExecution) -> str:
    row.refresh_from_db()
    return row.state


def run_of(handler: str, broker: Broker) -> SchedulerExecution:
    return run_now(SchedulerFactory(rare=True, handler=handler, params={}), broker)


def resume(now: datetime | None = None) -> None:
    Pause.objects.update(ends_at=now or clock.now())


PAUSES = {
    "handler": {"name": "tests.noop"},
    "queue": {"of_queue": True, "name": "main"},
    "site": {"of_site": True},
}


@pytest.mark.parametrize("scope", PAUSES)
def test_a_paused_run_waits_with_its_reason_and_starts_after_the_pause(connect: Connect, scope: str) -> None:
    PauseFactory(**PAUSES[scope])
    broker = connect()
    run = run_of("tests.noop", broker)
    desk = PausingDesk(broker)
    wait_for(lambda: [arrival for arrival in desk.look() if arrival.deferred], "it waits")
    run.refresh_from_db()
    assert (run.attempt, run.retry_base) == (0, 0)
    assert run.reason.endswith("is paused by ann: The warehouse moves.")
    assert run.wake_at is not None
    assert timedelta(minutes=49) < run.wake_at - clock.now() <= timedelta(hours=1)
    assert wake_after_pauses(clock.now()) == 0
    assert publish_claimed(broker, clock.now()) == 0
    assert not desk.look()
    resume()
    assert wake_after_pauses(clock.now()) == 1
    publish_claimed(broker, clock.now() + timedelta(seconds=1))
    delivery = desk.start()
    assert (delivery.message.execution_id, delivery.message.attempt, delivery.message.retry_count) == (run.pk, 1, 0)
    desk.end(delivery)
    run.refresh_from_db()
    assert (run.state, run.reason, run.deferred_at) == ("succeeded", "", None)


def test_a_paused_handler_blocks_no_other(connect: Connect) -> None:
    PauseFactory(name="tests.noop")
    broker = connect()
    paused = [run_of("tests.noop", broker) for _ in range(5)]
    other = run_of("tests.mark", broker)
    desk = PausingDesk(broker)
    started = desk.start()
    assert started.message.execution_id == other.pk
    desk.end(started)
    assert {state(row) for row in paused} == {"queued" if broker.embedded else "claimed"}


def test_what_runs_ends_and_its_retry_waits(connect: Connect) -> None:
    broker = connect()
    run = run_of("tests.noop", broker)
    desk = PausingDesk(broker)
    delivery = desk.start()
    PauseFactory(name="tests.noop")
    desk.end(delivery, ERROR)
    assert state(run) == "retrying"
    SchedulerExecution.objects.update(wake_at=clock.now())
    wait_for(lambda: [arrival for arrival in desk.look() if arrival.deferred], "the retry waits")
    run.refresh_from_db()
    assert (run.attempt, run.retry_base) == (1, 0)
    resume()
    wake_after_pauses(clock.now())
    publish_claimed(broker, clock.now() + timedelta(seconds=1))
    again = desk.start()
    assert (again.message.execution_id, again.message.attempt, again.message.retry_count) == (run.pk, 2, 1)
    desk.end(again)


def waiting(handler: str, **columns: object) -> SchedulerExecution:
    now = clock.now()
    row: SchedulerExecution = ManualExecutionFactory(
        scheduler=SchedulerFactory(rare=True, handler=handler),
        **{"state": "queued", "wake_at": now + timedelta(minutes=50), "deferred_at": now} | columns,
    )
    return row


def test_the_end_of_a_pause_wakes_no_run_that_another_pause_stops() -> None:
    PauseFactory(of_site=True, ended=True)
    PauseFactory(name="tests.mark")
    PauseFactory(of_queue=True, name="mail")
    free, other = waiting("tests.noop"), waiting("tests.mark")
    mail, later = waiting("tests.noop", queue="mail.low"), waiting("tests.noop", deferred_at=None)
    now = clock.now()
    assert wake_after_pauses(now) == 1
    rows = SchedulerExecution.objects.filter(wake_at__lte=now)
    assert [row.pk for row in rows] == [free.pk]
    assert {other.pk, mail.pk, later.pk}.isdisjoint(row.pk for row in rows)


def test_the_end_of_a_pause_leaves_the_runs_that_wait_for_a_place_to_their_line() -> None:
    PauseFactory(of_site=True, ended=True)
    in_line, other = waiting("tests.noop"), waiting("tests.noop")
    LimitPlaceFactory(execution=in_line, state="waiting")
    now = clock.now()
    assert wake_after_pauses(now) == 1
    assert [row.pk for row in SchedulerExecution.objects.filter(wake_at__lte=now)] == [other.pk]


def test_a_pause_is_looked_at_for_a_minute_after_its_end_and_then_deleted() -> None:
    """A consumer may not know yet that it has ended, and let a run wait for it."""
    pause, now = PauseFactory(ended=True), clock.now()
    assert wake_after_pauses(now) == 0
    late = waiting(pause.name)
    assert wake_after_pauses(now) == 1
    late.refresh_from_db()
    assert late.wake_at == now
    wake_after_pauses(now + LATE_ARRIVALS)
    assert not Pause.objects.exists()
