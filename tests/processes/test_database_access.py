"""After an outage of the database, no lease is taken for lost before its owner could renew it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import InterfaceError

from scheduling.broker.database import DatabaseBroker
from scheduling.core.clock_skew import Skew
from scheduling.core.database_errors import Verdict, mysql_verdict, postgresql_verdict
from scheduling.models import SchedulerExecution
from scheduling.processes.database_access import DatabaseAccess
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.shutdown import ShutdownRequest
from scheduling.producer.loop import Producer
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import NOON, StoppedClock

LEASE = 15
AWAY = InterfaceError("connection already closed")  # an outage on every database


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def none_of_this_outage(access: DatabaseAccess, outage_seconds: float) -> bool:
    """Whether no lease counts as lost that has ended in the last seconds."""
    return access.lost_after is None or access.lost_after > outage_seconds


def turns(access: DatabaseAccess, clock: Clock, seconds: float, step: float = 0.5) -> None:
    """Let turns succeed for this many seconds."""
    until = clock.seconds + seconds
    while clock.seconds < until:
        access.succeeded()
        clock.seconds += step


@pytest.mark.django_db
def test_after_an_outage_owners_have_the_length_of_a_lease() -> None:
    clock = Clock()
    access = DatabaseAccess(LEASE, clock, server=True)
    turns(access, clock, 100)
    assert access.lost_after == 0.0
    for _try in range(12):
        access.failed(AWAY)
        clock.seconds += 2
    assert access.lost_after is None
    turns(access, clock, LEASE)
    assert access.lost_after == 0.0
    access.failed(AWAY)
    access.answered()
    assert none_of_this_outage(access, LEASE)


def test_a_server_that_was_suspended_answered_late() -> None:
    clock = Clock()
    access = DatabaseAccess(LEASE, clock, server=True)
    turns(access, clock, 100)
    clock.seconds += LEASE / 2 + 1  # no error: the statement was only answered late
    access.answered()
    assert none_of_this_outage(access, LEASE / 2 + 1)
    turns(access, clock, LEASE - 1)
    assert none_of_this_outage(access, LEASE)
    clock.seconds += 1
    assert access.lost_after == 0.0


def test_a_short_pause_delays_nothing() -> None:
    clock = Clock()
    access = DatabaseAccess(LEASE, clock, server=True)
    turns(access, clock, 100)
    clock.seconds += LEASE / 3
    access.answered()
    assert access.lost_after == 0.0


def test_a_new_process_waits_only_if_there_is_a_server() -> None:
    clock = Clock()
    access = DatabaseAccess(LEASE, clock, server=True)
    assert access.lost_after is None
    access.answered()
    assert access.lost_after is None
    clock.seconds += LEASE
    assert access.lost_after == 0.0
    assert DatabaseAccess(LEASE, clock, server=False).lost_after == 0.0


@pytest.mark.parametrize("fault", ["late", "error"])
@pytest.mark.parametrize("server", [True, False])
@pytest.mark.django_db
def test_breaks_that_come_again_and_again_end_the_recovery_of_no_lease(server: bool, fault: str) -> None:
    """The owner has died. A busy SQLite file keeps the producer waiting for longer than half a lease, each 13 s."""
    clock = Clock()
    access = DatabaseAccess(LEASE, clock, server=server)
    turns(access, clock, 10)
    ended_at = clock.seconds
    for _break in range(4):
        if fault == "error":
            access.failed(AWAY)
        clock.seconds += LEASE / 2 + 1
        access.answered()
        if _break < 3:  # 2 s of each window count for nothing
            assert none_of_this_outage(access, clock.seconds - ended_at)
        turns(access, clock, 13)
        access.answered()
    assert access.lost_after is not None
    assert access.lost_after < clock.seconds - ended_at


@pytest.mark.django_db
def test_short_windows_of_a_database_that_flaps_count_for_nothing() -> None:
    clock = Clock()
    access = DatabaseAccess(LEASE, clock, server=True)
    for _break in range(500):
        access.failed(AWAY)
        clock.seconds += 5
        turns(access, clock, 2)  # an owner waits 2 s between two tries, so it may have had none
        assert access.lost_after is None


@pytest.mark.django_db
def test_other_errors_are_no_outage() -> None:
    clock = Clock()
    access = DatabaseAccess(LEASE, clock, server=False)
    access.failed(ValueError("a defect"))
    assert access.lost_after == 0.0
    assert postgresql_verdict("40P01") is mysql_verdict(1213) is Verdict.CONFLICT
    assert postgresql_verdict("55P03") is mysql_verdict(1205) is Verdict.CONFLICT


@pytest.mark.django_db
def test_an_outage_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    clock = Clock()
    access = DatabaseAccess(LEASE, clock, server=True)
    delays = []
    for _try in range(35):
        delays.append(access.failed(AWAY))
        clock.seconds += 2
    assert max(delays) == 2.0
    access.succeeded()
    access.succeeded()
    assert [record.getMessage() for record in caplog.records] == [
        "The database did not answer; trying again in 0.5 s: connection already closed",
        "The database has not answered for 60 s: connection already closed",
        "The database answers again, after 70.0 s",
    ]


@pytest.mark.parametrize("lease_seconds", [3, 15, 3600])
@pytest.mark.django_db
def test_a_process_tries_again_within_a_heartbeat(lease_seconds: int) -> None:
    access = DatabaseAccess(lease_seconds, Clock(), server=True)
    assert max(access.failed(AWAY) for _try in range(10)) <= min(2.0, lease_seconds / 3)


@pytest.mark.django_db(transaction=True)
def test_a_producer_recovers_no_lease_that_ended_during_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease ended while the database was away. Its consumer is alive and renews it as soon as it can."""
    clock = Clock()
    now = lambda: NOON + timedelta(seconds=clock.seconds)  # noqa: E731
    with ShutdownRequest() as stop:
        producer = Producer(DatabaseBroker(), stop, StoppedClock(now))
        producer._access = DatabaseAccess(LEASE, clock, server=True)
        monkeypatch.setattr("scheduling.producer.loop.SWEEP_SECONDS", 0.0)

        def turn() -> str:
            producer.turn()
            producer._access.succeeded()
            return str(SchedulerExecution.objects.get().state)

        row = ManualExecutionFactory(running=True, wake_at=now() + timedelta(seconds=LEASE))
        for _turn in range(20):
            turn()
            clock.seconds += 1
            SchedulerExecution.objects.update(wake_at=now() + timedelta(seconds=LEASE))  # its consumer renews it
        for _try in range(13):
            producer._access.failed(AWAY)
            clock.seconds += 2
        assert SchedulerExecution.objects.get().wake_at < now()
        assert turn() == "running"
        clock.seconds += 5
        assert turn() == "running"
        SchedulerExecution.objects.update(wake_at=now() + timedelta(seconds=LEASE))
        for _turn in range(LEASE):
            assert turn() == "running"
            clock.seconds += 1
        assert turn() == "running"
        clock.seconds += 1  # now its consumer had time and did not use it
        assert turn() != "running"
        row.refresh_from_db()
        assert row.error_class == "Crashed"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_jumps_during_a_fail_over_starts_and_recovers_nothing(hours: int) -> None:
    """The promoted server has another clock than this host. A person must correct it first."""
    answers = [(NOON, Skew())]
    clock = ServerClock(lambda: NOON, ask=lambda: answers[-1], elapsed=lambda: 1000.0)
    row = ManualExecutionFactory(running=True, wake_at=NOON + timedelta(seconds=LEASE))
    schedule = due(SchedulerFactory(), NOON + timedelta(minutes=30))
    with ShutdownRequest() as stop:
        producer = Producer(DatabaseBroker(), stop, clock)
        producer._upkeep.turn = lambda _asked: (clock.compare(), set())[1]  # type: ignore
        producer._access = DatabaseAccess(0.0, server=False)  # every owner had time
        producer.turn()
        producer._access.failed(AWAY)
        answers.append((NOON + timedelta(hours=hours), Skew(-3600.0 * hours, 0.01)))
        producer._beat_at = 0.0
        for _turn in range(3):
            producer.turn()
    assert not clock.trusted
    assert list(SchedulerExecution.objects.values_list("pk", "state")) == [(row.pk, "running")]
    assert not SchedulerExecution.objects.filter(scheduler=schedule).exists()
