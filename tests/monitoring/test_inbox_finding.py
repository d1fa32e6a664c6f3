"""Tests of the finding about failures that wait in the inbox."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.models import SchedulerExecution
from scheduling.monitoring.findings import inbox
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.monitoring.findings.present import Present
from tests.factories import SchedulerExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db


def finding() -> Finding:
    (found,) = inbox.examine(Present(clock.now()))
    return found


def test_an_empty_inbox_is_fine() -> None:
    SchedulerExecutionFactory(succeeded=True)
    assert finding().level is Level.OK


def test_the_first_failure_is_named_with_its_schedule_and_age() -> None:
    row = SchedulerFactory(description="Import orders")
    failed = SchedulerExecutionFactory(scheduler=row, failed=True, error_class="shop.GatewayTimeout")
    SchedulerExecution.objects.filter(pk=failed.pk).update(finished_at=clock.now() - timedelta(hours=3))
    found = finding()
    assert (found.level, found.seen) == (Level.WARN, "Failures in the inbox: 1.")
    (named,) = found.rows
    assert (named.name, named.pk) == ("1 x GatewayTimeout", failed.pk)
    assert named.about == "Import orders, first failure 3 h ago"


def test_a_later_success_hides_no_failure() -> None:
    row = SchedulerFactory()
    SchedulerExecutionFactory(scheduler=row, failed=True)
    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    assert finding().level is Level.WARN


def test_the_most_frequent_causes_come_first_and_the_others_are_counted() -> None:
    for number in range(7):
        for _failure in range(number + 1):
            SchedulerExecutionFactory(failed=True, error_class=f"Error{number}", fingerprint=f"{number}" * 16)
    found = finding()
    assert [row.name for row in found.rows] == [f"{number + 1} x Error{number}" for number in (6, 5, 4, 3, 2)]
    assert str(found.more) == "2"
    assert "schedules" in found.rows[0].about


def test_only_the_newest_failures_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "LOOKED_AT", 2)
    SchedulerExecutionFactory.create_batch(3, failed=True)
    found = finding()
    assert found.seen == "Failures in the inbox: 3."
    assert sum(row.count for row in found.rows) == 2


def test_an_instant_that_cannot_be_read_hides_no_cause() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite stores any text as an instant")
    row = SchedulerExecutionFactory(failed=True)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_schedulerexecution SET finished_at = 'soon' WHERE id = %s", [row.pk])
    assert len(finding().rows) == 1


def test_a_failure_of_a_message_without_target() -> None:
    SchedulerExecutionFactory(failed=True, scheduler=None, type="", target_name="")
    assert finding().rows[0].about.startswith("messages that cannot be read")
