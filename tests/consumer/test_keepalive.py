"""A process writes its heartbeat often enough to renew leases and to show that the process is alive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.keepalive import FORKSERVER_SECONDS, KeepAlive
from scheduling.core.lifecycle import silent_after
from scheduling.models import Deployment, Process
from scheduling.processes.heartbeat import heartbeat_seconds
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.server_clock import ServerClock
from tests.support import NOON, StoppedClock

pytestmark = pytest.mark.django_db(transaction=True)


def keepalive(slots: Any, clock: ServerClock, lease_seconds: int = 15) -> KeepAlive:
    broker = DatabaseBroker()
    return KeepAlive(broker, slots, lease_seconds, ["main"], clock, LoadedCode(), Rescue(broker, ["main"]))


@pytest.mark.parametrize("lease_seconds", [3, 15, 60, 90, 3600])
def test_a_long_lease_does_not_make_a_process_look_silent(lease_seconds: int) -> None:
    seconds, silent = heartbeat_seconds(lease_seconds), silent_after(lease_seconds)
    slots: Any = SimpleNamespace(count=2, owned=[], busy=0, over=[], pool=SimpleNamespace(ready=True))
    times = [NOON]
    clock = StoppedClock(lambda: times[-1])
    heartbeat = keepalive(slots, clock, lease_seconds)
    heartbeat.keep(100.0, runs=7)
    assert heartbeat.next_clock == 100.0 + seconds
    assert seconds * 3 <= lease_seconds
    assert 2 * seconds < silent.total_seconds() < 3 * seconds
    row = Process.objects.get()
    assert (row.heartbeat_at, row.info["runs"], row.concurrency) == (NOON, 7, 2)
    times.append(NOON + silent)
    heartbeat.keep(100.0 + seconds / 2, runs=8)
    row.refresh_from_db()
    assert row.heartbeat_at == NOON


def test_a_consumer_is_alive_when_its_first_run_could_start() -> None:
    """A deploy ends an old consumer as soon as the new one is alive."""
    pool = SimpleNamespace(ready=False)
    slots: Any = SimpleNamespace(count=2, owned=[], busy=0, over=[], pool=pool)
    heartbeat = keepalive(slots, StoppedClock(lambda: NOON))
    begun = heartbeat.next_clock - FORKSERVER_SECONDS
    heartbeat.keep(begun + 1, runs=0)
    assert not Process.objects.exists()
    pool.ready = True
    heartbeat.keep(begun + 2, runs=0)
    assert Process.objects.get().handler_set is not None


def test_a_consumer_whose_forkserver_does_not_start_is_listed_all_the_same() -> None:
    slots: Any = SimpleNamespace(count=2, owned=[], busy=0, over=[], pool=SimpleNamespace(ready=False))
    heartbeat = keepalive(slots, StoppedClock(lambda: NOON))
    heartbeat.keep(heartbeat.next_clock, runs=0)
    assert Process.objects.exists()


def test_an_idle_consumer_writes_no_beat_of_the_deployment_and_a_busy_one_does() -> None:
    slots: Any = SimpleNamespace(count=2, owned=[], busy=0, over=[], pool=SimpleNamespace(ready=True))
    heartbeat = keepalive(slots, StoppedClock(lambda: NOON))
    for number in range(5):
        heartbeat.keep(number * 5.0, runs=3)
    assert Deployment.objects.get().worked in {0, 10}  # the runs before the first look count, at most
    before = Deployment.objects.get().worked
    for number in range(5, 9):
        heartbeat.keep(number * 5.0, runs=number)
    assert Deployment.objects.get().worked == before + 20


def test_a_consumer_that_holds_is_not_made_known() -> None:
    """Another deployment's consumers must not wait for it."""
    slots: Any = SimpleNamespace(count=2, owned=[], busy=0, over=[], pool=SimpleNamespace(ready=True))
    heartbeat = keepalive(slots, StoppedClock(lambda: NOON))
    Deployment.objects.update(name="production", fingerprints="0" * 32)
    heartbeat.keep(0.0, runs=0)
    row = Process.objects.get()
    assert (row.handler_set, bool(row.held)) == (None, True)
    Deployment.objects.update(name="", fingerprints="")
    heartbeat.keep(5.0, runs=0)  # a consumer that holds looks with each heartbeat
    row = Process.objects.get()
    assert (row.handler_set is None, bool(row.held)) == (False, False)
