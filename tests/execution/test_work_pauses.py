"""The pauses that consumers read, also if plain SQL has written them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.core.pauses import Scope
from scheduling.execution.work_pauses import CurrentPauses, pause_for, pauses_now
from scheduling.models import Pause
from tests.factories import PauseFactory

pytestmark = pytest.mark.django_db


def test_a_pause_holds_for_all_priorities_of_a_queue() -> None:
    PauseFactory(of_queue=True, name="mail")
    now = clock.now()
    for queue in ("mail", "mail.high", "mail.low"):
        assert pause_for("worker", "tests.noop", queue, now) is not None
    assert pause_for("worker", "tests.noop", "main", now) is None


def test_a_pause_that_has_ended_stops_nothing() -> None:
    PauseFactory(of_site=True, ended=True)
    assert pause_for("worker", "tests.noop", "main", clock.now()) is None


def test_the_pauses_are_read_once_a_second() -> None:
    PauseFactory(of_site=True)
    pauses, now = CurrentPauses(), clock.now()
    with CaptureQueriesContext(connection) as captured:
        found = [pauses.find("worker", f"tests.{number}", "main", now) for number in range(100)]
    assert len(captured) == 1
    assert {each.scope for each in found if each} == {Scope.SITE}
    assert None not in found
    ended = now + timedelta(seconds=1)
    Pause.objects.update(ends_at=ended)
    pauses._until = 0.0
    assert pauses.find("worker", "tests.noop", "main", ended) is None


@pytest.mark.parametrize("scope", ["", "everything", "SITE"])
def test_a_pause_of_an_unknown_scope_stops_nothing_and_hides_no_other(
    scope: str, caplog: pytest.LogCaptureFixture
) -> None:
    PauseFactory(scope=scope)
    PauseFactory(of_queue=True, name="mail")
    assert [each.name for each in pauses_now(clock.now())] == ["mail"]
    assert "cannot be used" in caplog.text


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite stores a text in a column of instants")
def test_a_pause_with_an_unreadable_end_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    bad, good = PauseFactory(), PauseFactory()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_pause SET ends_at = '2026-99-99 00:00:00' WHERE id = %s", [bad.pk])
    assert [each.name for each in pauses_now(clock.now())] == [good.name]
    assert "cannot be read" in caplog.text


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the other databases store instants in UTC")
def test_a_pause_that_ends_outside_of_the_calendar_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    bad, good = PauseFactory(), PauseFactory()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_pause SET ends_at = '0001-01-01T00:00:00+14:00' WHERE id = %s", [bad.pk])
    assert [each.name for each in pauses_now(clock.now())] == [good.name]
    assert "cannot be used" in caplog.text
