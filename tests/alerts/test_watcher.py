"""A connection that cannot be closed ends neither the thread of the alerts nor a process that stops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connections

from scheduling.alerts import watcher as module
from scheduling.alerts.evaluator import Evaluator
from scheduling.alerts.watcher import Watcher
from scheduling.models import AlertRule
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=[OperationalError, InterfaceError])
def closing_fails(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each attempt to close the connections of a thread fails."""

    def fail() -> None:
        raise request.param("the connection is already closed")

    with monkeypatch.context() as patched:
        patched.setattr(connections, "close_all", fail)
        yield


class Counted:
    """Stands for the evaluator, and counts its turns."""

    hurries = False

    def __init__(self, *_arguments: Any) -> None:
        self.turns = 0

    def turn(self) -> None:
        """Count."""
        self.turns += 1

    def close(self) -> None:
        """Do nothing."""


def test_the_thread_goes_on_after_a_connection_that_cannot_be_closed(
    closing_fails: None, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.CRON_ALERTS, settings.CRON_ALERTS_SECONDS = True, 1
    made: list[Counted] = []
    monkeypatch.setattr(module, "Evaluator", lambda *given: made.append(Counted()) or made[-1])
    monkeypatch.setattr(Watcher, "_wait", lambda self, evaluator, until: None)
    with Watcher():
        wait_for(lambda: bool(made) and made[0].turns > 2, "the thread goes on")


def test_a_process_stops_although_a_connection_cannot_be_closed(closing_fails: None) -> None:
    AlertRule.objects.all().delete()
    one = Evaluator(name="one")
    one.turn()
    one.close()
