"""A process is alive, silent or stopped. The queryset, the row and the badge give the same answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduling.admin.ui.badges import process_badge
from scheduling.models import Process
from tests.factories import ProcessFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("lease", "age", "stopped", "presence"),
    [
        ("15", 12, False, "alive"),  # a heartbeat every 5 s, and two may be missed
        ("15", 13, False, "silent"),
        ("15", 13, True, "stopped"),
        ("15", 1, True, "stopped"),
        ("300", 37, False, "alive"),  # a heartbeat every 15 s
        ("300", 38, False, "silent"),
        ("15", -60, False, "alive"),  # the clocks of hosts differ
        ("15", -61, False, "silent"),  # the database's clock was set back
    ],
)
def test_queryset_row_and_badge_agree(settings: Any, lease: str, age: int, stopped: bool, presence: str) -> None:
    settings.CRON_LEASE_SECONDS = lease
    row = ProcessFactory(heartbeat_at=NOON - timedelta(seconds=age), stopped_at=NOON if stopped else None)
    assert list(Process.objects.alive(NOON)) == ([row] if presence == "alive" else [])
    assert list(Process.objects.silent(NOON)) == ([row] if presence == "silent" else [])
    assert (row.is_alive(NOON), row.is_silent(NOON)) == (presence == "alive", presence == "silent")
    assert presence in process_badge(row, NOON)


def test_alive_processes_of_one_kind() -> None:
    producer, consumer = ProcessFactory(producer=True, heartbeat_at=NOON), ProcessFactory(heartbeat_at=NOON)
    assert set(Process.objects.alive(NOON)) == {producer, consumer}
    assert list(Process.objects.alive(NOON, Process.Kind.PRODUCER)) == [producer]
    assert list(Process.objects.alive(NOON, Process.Kind.CONSUMER)) == [consumer]


@pytest.mark.parametrize(("info", "queue"), [({"queue": "standalone"}, "standalone"), ({}, ""), (["odd"], "")])
def test_a_consumer_before_its_first_heartbeat_may_serve_any_queue(info: Any, queue: str) -> None:
    row = ProcessFactory(info=info, heartbeat_at=NOON)
    assert row.queue == queue
    assert Process.objects.serving("standalone", NOON) == [row]
    assert Process.objects.serving("main", NOON) == ([] if queue else [row])
