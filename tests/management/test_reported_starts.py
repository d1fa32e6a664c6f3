"""`up` says that everything is running when each producer and consumer has reported what it does, not earlier."""

from __future__ import annotations

import socket
from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.management.background_look import BackgroundLook
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
