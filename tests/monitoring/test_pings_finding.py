"""Pings that monitors did not get are findings."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.models.visibility import Visibility
from scheduling.monitoring.findings import pings
from scheduling.monitoring.findings.present import Present
from tests.factories import GroupFactory, PingFactory, SchedulerExecutionFactory

pytestmark = pytest.mark.django_db


def found(visible: Visibility | None = None) -> dict[str, str]:
    present = Present(clock.now()) if visible is None else Present(clock.now(), visible)
    return {finding.check: finding.in_full for finding in pings.examine(present)}


def test_a_delivered_ping_and_one_that_is_tried_again_are_fine() -> None:
    execution = SchedulerExecutionFactory(succeeded=True)
    PingFactory(execution=execution, created_at=clock.now() - timedelta(hours=3))
    PingFactory(execution=execution, waiting=True, created_at=clock.now() - timedelta(minutes=9))
    assert found() == {}


def test_a_ping_that_waits_for_more_than_ten_minutes_is_named() -> None:
    execution = SchedulerExecutionFactory(succeeded=True)
    PingFactory(execution=execution, waiting=True, created_at=clock.now() - timedelta(minutes=11))
    assert found() == {
        "late pings": "Pings that wait for more than ten minutes: 1. "
        f"tests.noop {execution.execution_key} (Healthchecks: The server answered 503: no text)."
    }


def test_an_end_that_was_given_up_is_named_for_a_day() -> None:
    execution = SchedulerExecutionFactory(succeeded=True)
    PingFactory(execution=execution, dropped=True, event="start")  # its end is told instead
    assert found() == {}
    ping = PingFactory(execution=execution, dropped=True, event="fail")
    assert set(found()) == {"dropped pings"}
    ping.at = clock.now() - timedelta(days=1, minutes=1)
    ping.save()
    assert found() == {}


def test_a_user_of_another_group_is_told_nothing() -> None:
    own, other = GroupFactory(), GroupFactory()
    execution = SchedulerExecutionFactory(succeeded=True, group=own)
    PingFactory(execution=execution, dropped=True)
    assert set(found(Visibility(frozenset({own.pk})))) == {"dropped pings"}
    assert found(Visibility(frozenset({other.pk}))) == {}


def test_an_index_finds_them() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the plan of another database depends on its statistics")
    with CaptureQueriesContext(connection) as queries:
        found()
    statement = next(query["sql"] for query in queries.captured_queries if "scheduling_ping" in query["sql"])
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        plans = [row[3] for row in cursor.fetchall() if "scheduling_ping" in row[3]]
    assert plans
    assert all("USING INDEX scheduling_ping_state" in plan for plan in plans), plans
