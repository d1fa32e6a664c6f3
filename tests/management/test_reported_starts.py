"""`up` says that everything is running when each producer and consumer has reported what it does, not earlier."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.management.background_look import BackgroundLook
from scheduling.management.commands import up
from scheduling.management.first_start import Account
from scheduling.management.reported_starts import ReportedStarts, all_reported
from tests.factories import ProcessFactory

pytestmark = pytest.mark.django_db


def test_each_process_must_have_reported_from_this_host() -> None:
    here = socket.gethostname()
    ProcessFactory(host=here, pid=11, info={"queue": "embedded"})
    other = ProcessFactory(host="elsewhere", pid=12, info={"queue": "embedded"})
    assert all_reported([11])
    assert not all_reported([11, 12])
    other.host = here
    other.info = {}  # it has started, and takes nothing yet
    other.save()
    assert not all_reported([11, 12])
    other.info = {"queue": "embedded"}
    other.save()
    assert all_reported([11, 12])
    other.heartbeat_at = clock.now() - timedelta(hours=1)  # an older process with the same id, which was killed
    other.save()
    assert not all_reported([11, 12])


def test_it_looks_until_all_have_reported() -> None:
    pids: list[int] = []
    reported = ReportedStarts(lambda: pids, 1)
    assert (reported._look(), reported()) == (True, False)  # nothing has been started
    pids.append(11)
    assert (reported._look(), reported()) == (True, False)
    ProcessFactory(host=socket.gethostname(), pid=11, info={"running": 0})
    assert (reported._look(), reported()) == (False, True)


def test_an_error_does_not_end_the_looking() -> None:
    results = iter([OSError(), True, False])
    calls = []

    def look() -> bool:
        calls.append(found := next(results))
        if isinstance(found, OSError):
            raise found
        return found

    with BackgroundLook(look, 0, "test") as looking:
        looking._thread.join(10)
    assert [bool(call) for call in calls] == [True, True, False]


def test_up_waits_for_the_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """The children run, and have not reported yet: the welcome comes later."""
    reports = iter([False, True])
    welcomes = []

    class Foreman:
        def __init__(self, *_specs: Any, **_options: Any) -> None:
            """As `Foreman`, whose children all run."""

        def all_running(self) -> bool:
            return True

        def run(self, watch: Callable[[], bool]) -> int:
            welcomes.extend([watch(), watch()])
            return 0

    monkeypatch.setattr(up, "Foreman", Foreman)
    monkeypatch.setattr(ReportedStarts, "__enter__", lambda reported: reported)
    monkeypatch.setattr(ReportedStarts, "__call__", lambda _reported: next(reports))
    monkeypatch.setattr(up.ServiceDemand, "__enter__", lambda demand: demand)
    out = io.StringIO()
    options = {"concurrency": 1, "host": "", "producers": 1, "consumers": 1, "metrics_port": None, "grace": None,
               "force_color": False, "no_color": True}  # fmt: skip
    assert up.Command(stdout=out)._run([], None, Account("admin"), options) == 0
    assert welcomes == [True, False]
    assert out.getvalue().count("Everything is running") == 1
