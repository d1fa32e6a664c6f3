"""The heartbeat: often enough for leases, and for those who watch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scheduling.consumer.heartbeat import Heartbeat
from scheduling.models import Process
from scheduling.reconcile import SILENT_AFTER
from tests.support import NOON

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("lease_seconds", "seconds"), [(3, 1.0), (15, 5.0), (3600, 15.0)])
def test_a_long_lease_does_not_make_a_process_look_silent(lease_seconds: int, seconds: float) -> None:
    slots: Any = SimpleNamespace(count=2, running=[], over=[])
    heartbeat = Heartbeat(slots, lease_seconds, "main")
    heartbeat.keep(100.0, NOON, runs=7)
    assert heartbeat.next_clock == 100.0 + seconds
    assert seconds * 2 < SILENT_AFTER.total_seconds()
    row = Process.objects.get()
    assert (row.heartbeat_at, row.info["runs"], row.concurrency) == (NOON, 7, 2)
    heartbeat.keep(100.0 + seconds / 2, NOON + SILENT_AFTER, runs=8)
    row.refresh_from_db()
    assert row.heartbeat_at == NOON
