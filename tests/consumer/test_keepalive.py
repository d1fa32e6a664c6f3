"""A process writes its heartbeat often enough to renew leases and to show that the process is alive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scheduling.consumer.keepalive import KeepAlive
from scheduling.core.lifecycle import silent_after
from scheduling.models import Process
from scheduling.processes.heartbeat import heartbeat_seconds
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.server_clock import ServerClock
from tests.support import NOON

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("lease_seconds", [3, 15, 60, 90, 3600])
def test_a_long_lease_does_not_make_a_process_look_silent(lease_seconds: int) -> None:
    seconds, silent = heartbeat_seconds(lease_seconds), silent_after(lease_seconds)
    slots: Any = SimpleNamespace(count=2, running=[], over=[])
    times = [NOON]
    clock = ServerClock(lambda: times[-1], ask=lambda: None)
    heartbeat = KeepAlive(slots, lease_seconds, "main", clock, LoadedCode())
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
