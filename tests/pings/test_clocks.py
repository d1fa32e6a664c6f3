"""Pings are sent by the clock of the database. No wrong clock of a host delays them, or gives them up."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.keepalive import KeepAlive
from scheduling.core.clock_skew import Skew
from scheduling.core.pings import FARTHEST, LONGEST_WAIT, OLD_END_LIFETIME, age_of, is_due
from scheduling.models import Ping, Scheduler
from scheduling.pings import sender as module
from scheduling.pings.sender import Sender
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.shutdown import ShutdownRequest
from scheduling.producer.loop import Producer
from tests.factories import ManualExecutionFactory, PingFactory, SchedulerFactory
from tests.pings.healthchecks_server import Healthchecks
from tests.support import NOON

pytestmark = pytest.mark.django_db(transaction=True)

WRONG = timedelta(days=30)


def schedule_of(healthchecks: Healthchecks) -> Scheduler:
    row: Scheduler = SchedulerFactory(rare=True, ping_url=healthchecks.url(uuid.uuid4()))
    return row


def ping_of(row: Scheduler, happened: datetime, event: str = "fail", **columns: Any) -> Ping:
    """A ping of a run of its own, which happened at this time by the clock of the database."""
    execution = ManualExecutionFactory(scheduler=row, state="succeeded")
    values = {"created_at": happened, "begun_at": happened, "at": happened, "tries": 0, "error": ""} | columns
    ping: Ping = PingFactory(execution=execution, waiting=True, event=event, **values)
    return ping


def sender_by(now: Callable[[], datetime]) -> Sender:
    """The sender of a process whose database shows this time."""
    sender = Sender()
    sender.told((), now, held=False)
    sender.switch_on()
    return sender


def ahead_of_host(by: timedelta) -> Callable[[], datetime]:
    """The clock of a database that is ahead of this host's clock; negative: behind it."""
    return lambda: clock.now() + by


@pytest.mark.parametrize("ahead", [timedelta(hours=3), timedelta(days=2)])
def test_a_host_whose_clock_is_ahead_puts_off_no_ping_for_hours(healthchecks: Healthchecks, ahead: timedelta) -> None:
    healthchecks.status = 503
    database = ahead_of_host(-ahead)
    ping = ping_of(schedule_of(healthchecks), database())
    sender_by(database)._turn()
    ping.refresh_from_db()
    assert (ping.state, ping.tries) == ("waiting", 1)
    assert ping.at <= database() + LONGEST_WAIT


def test_a_host_whose_clock_is_behind_tells_a_start_at_once(healthchecks: Healthchecks) -> None:
    database = ahead_of_host(timedelta(minutes=5))
    ping = ping_of(schedule_of(healthchecks), database(), "start")
    sender_by(database)._turn()
    assert Ping.objects.get(pk=ping.pk).state == "sent"


def test_an_end_that_no_attempt_has_told_is_dated_by_the_database(healthchecks: Healthchecks) -> None:
    database = ahead_of_host(-WRONG)
    row = schedule_of(healthchecks)
    start = ping_of(row, database(), "start", state="sent")
    Ping.objects.filter(pk=start.pk).update(open_execution=start.execution_id)
    sender_by(database)._turn()
    end = Ping.objects.latest("pk")
    assert (end.event, end.state) == ("success", "sent")
    assert end.created_at <= database()


def test_a_ping_that_a_wrong_clock_has_dated_holds_up_no_other(healthchecks: Healthchecks) -> None:
    now = clock.now()
    row = schedule_of(healthchecks)
    pings = [ping_of(row, now, at=now + WRONG), ping_of(row, now), ping_of(schedule_of(healthchecks), now)]
    sender_by(clock.now)._turn()
    assert {*Ping.objects.filter(pk__in=[ping.pk for ping in pings]).values_list("state", flat=True)} == {"sent"}


def test_a_ping_that_waits_for_its_next_try_is_not_sent_before(healthchecks: Healthchecks) -> None:
    now = clock.now()
    row = schedule_of(healthchecks)
    ping_of(row, now, at=now + LONGEST_WAIT)
    sender_by(clock.now)._turn()
    assert healthchecks.calls == []


def test_a_thread_looks_at_once_at_a_ping_that_lies_far_ahead(healthchecks: Healthchecks) -> None:
    ping_of(schedule_of(healthchecks), clock.now() + WRONG)
    sender = Sender()  # it is not switched on, so it only looks
    sender._turn()
    assert sender._look_at is not None
    assert sender._look_at < time.monotonic() + FARTHEST.total_seconds()


def test_an_end_that_lies_far_ahead_is_tried_once_if_a_later_run_has_ended(healthchecks: Healthchecks) -> None:
    now = clock.now()
    row = schedule_of(healthchecks)
    early = ping_of(row, now + WRONG)
    ping_of(row, now)
    healthchecks.status = 503
    sender_by(clock.now)._turn()
    early.refresh_from_db()
    assert (early.state, early.tries) == ("dropped", 1)
    assert "a later run has ended meanwhile" in early.error


def test_the_last_end_is_tried_again_although_it_lies_far_ahead(healthchecks: Healthchecks) -> None:
    ping = ping_of(schedule_of(healthchecks), clock.now() + WRONG)
    healthchecks.status = 503
    sender_by(clock.now)._turn()
    ping.refresh_from_db()
    assert (ping.state, ping.tries) == ("waiting", 1)


def test_a_host_that_was_silent_is_called_again_after_the_clock_was_set_back(
    healthchecks: Healthchecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [clock.now() + WRONG]
    sender = sender_by(lambda: times[-1])
    ping = ping_of(schedule_of(healthchecks), times[-1])
    with monkeypatch.context() as patched:
        real = module.send_all
        patched.setattr(module, "send_all", lambda requests: real(requests, 0.1))
        healthchecks.hangs.clear()
        sender.send_due(times[-1])
    healthchecks.hangs.set()
    assert Ping.objects.get(pk=ping.pk).state == "waiting"
    times.append(clock.now())
    sender.send_due(times[-1])
    assert Ping.objects.get(pk=ping.pk).state == "sent"


def test_a_time_beyond_each_wait_is_due() -> None:
    assert is_due(NOON, NOON)
    assert not is_due(NOON + timedelta(seconds=1), NOON)
    assert not is_due(NOON + FARTHEST, NOON)
    assert is_due(NOON + FARTHEST + timedelta(seconds=1), NOON)


def test_an_event_that_lies_far_ahead_is_an_old_one() -> None:
    assert age_of(NOON, NOON + timedelta(minutes=3)) == timedelta(minutes=3)
    assert age_of(NOON + timedelta(seconds=1), NOON) == timedelta(seconds=-1)
    assert age_of(NOON + WRONG, NOON) == OLD_END_LIFETIME


def wrong_host() -> ServerClock:
    """The clock of a process whose host is three hours ahead of its database."""
    found = ServerClock(ask=lambda: (clock.now() - timedelta(hours=3), Skew(10_800.0)))
    found.compare()
    return found


def test_a_producer_whose_clock_is_wrong_sends_by_the_clock_of_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Sender()
    monkeypatch.setattr("scheduling.producer.loop.sender", sender)
    server = wrong_host()
    with ShutdownRequest() as stop:
        Producer(DatabaseBroker(), stop, server).turn()
    assert sender._now == server.now


def test_a_consumer_whose_clock_is_wrong_sends_by_the_clock_of_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Sender()
    monkeypatch.setattr("scheduling.consumer.keepalive.sender", sender)
    server, broker = wrong_host(), DatabaseBroker()
    slots: Any = SimpleNamespace(count=1, owned=[], busy=0, over=[], pool=SimpleNamespace(ready=True))
    KeepAlive(broker, slots, 15, ["main"], server, LoadedCode(), Rescue(broker, ["main"])).keep(100.0, runs=0)
    assert sender._now == server.now
