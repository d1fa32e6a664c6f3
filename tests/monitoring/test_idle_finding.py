"""Runs that wait beside idle consumers are a failure, on the dashboard, in the doctor and in `health`."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone as clock

from scheduling.models import RefusedRow
from scheduling.monitoring.doctor.liveness import Liveness, of_process
from scheduling.monitoring.findings.areas import problems
from scheduling.monitoring.findings.present import Present
from tests.factories import ManualExecutionFactory, ProcessFactory, RefusedRowFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stopped_clock() -> Iterator[None]:
    with time_machine.travel(clock.now(), tick=False):
        yield


def consumer(idle: float | None = 90, **info: Any) -> None:
    """A consumer of this host that has started nothing for `idle` seconds; None: nothing since it started."""
    last = None if idle is None else (clock.now() - timedelta(seconds=idle)).isoformat()
    ProcessFactory(producer=True, host=socket.gethostname())
    ProcessFactory(
        host=socket.gethostname(), info={"queue": "main", "runs": 7, "running": 0, "last_start": last, **info}
    )


def waiting(seconds: float, **columns: Any) -> int:
    return int(ManualExecutionFactory(wake_at=clock.now() - timedelta(seconds=seconds), **columns).pk)


def found() -> list[str]:
    return [finding.in_full for finding in problems(Present(clock.now())) if finding.check == "idle"]


def health() -> Liveness:
    return of_process("consumer", clock.now())


@pytest.mark.parametrize("idle", [90, None])
def test_a_run_that_waits_beside_an_idle_consumer(idle: float | None) -> None:
    waiting(75)
    consumer(idle)
    (text,) = found()
    assert text.startswith("Consumers are idle, and runs of the queue “main” wait: 1, the oldest for 1 min 15 s. host-")
    assert "(2 free slots)" in text
    assert health().well is False
    assert health().text.endswith("it is idle, and runs of its queue wait for 1 min 15 s")


@pytest.mark.parametrize(
    ("seconds", "idle", "info", "columns"),
    [
        (45, 90, {}, {}),
        (75, 5, {}, {}),
        (75, 90, {"running": 2}, {}),
        (75, 90, {"draining": True}, {}),
        (75, 90, {"clock_ahead": 60.0}, {}),
        (75, 90, {"queue": "standalone"}, {}),
        (75, 90, {"handlers": "--only reports.*"}, {}),
        (75, 90, {}, {"queue": "standalone"}),
        (75, 90, {}, {"state": "retrying"}),
        (75, 90, {}, {"state": "claimed"}),
        (-60, 90, {}, {}),
    ],
)
def test_no_false_alarm(seconds: float, idle: float, info: dict[str, Any], columns: dict[str, Any]) -> None:
    waiting(seconds, **columns)
    consumer(idle, **info)
    assert found() == []
    assert health().well


def test_a_busy_consumer_is_not_restarted() -> None:
    waiting(75)
    consumer(running=1)
    assert len(found()) == 1
    assert health().well


def test_a_consumer_of_an_older_version_is_left_out() -> None:
    waiting(75)
    ProcessFactory(host=socket.gethostname())
    assert found() == []
    assert health().well


def test_a_refused_row_alone_is_no_reason() -> None:
    RefusedRowFactory(kind=RefusedRow.Kind.EXECUTION, row_id=waiting(75))
    consumer()
    assert found() == []
    assert health().well
    waiting(80)
    assert len(found()) == 1


def test_unusable_reports_are_left_out() -> None:
    waiting(75)
    for info in ([], {"queue": "main", "last_start": "x", "running": "x"}, {"queue": [1], "last_start": {}}):
        ProcessFactory(host=socket.gethostname(), info=info, heartbeat_at=clock.now(), started_at=NOON)
        assert found() == []
        assert health().well
