"""Tests of the findings about schedules that are paused or were skipped, and about runs that take long."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.core.health import Health
from scheduling.core.skip_reasons import paused
from scheduling.execution.rule_pauses import pause_failing
from scheduling.models import Scheduler
from scheduling.models.health import health_of, with_health
from scheduling.monitoring.findings.areas import problems
from scheduling.monitoring.findings.finding import Finding
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import services
from tests.factories import SchedulerExecutionFactory, SchedulerFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db


def finding(check: str) -> Finding | None:
    found = [each for each in problems(Present(clock.now())) if each.check == check]
    return found[0] if found else None


@pytest.mark.parametrize(("hours", "said"), [(23, False), (25, True)])
def test_a_pause_is_named_after_a_day(hours: int, said: bool) -> None:
    row = SchedulerFactory(description="Invoices")
    row.status, row.pause_reason, row.paused_by = False, "storage full", "anna"
    row.save()
    Scheduler.objects.filter(pk=row.pk).update(paused_at=clock.now() - timedelta(hours=hours), paused_by="anna")
    found = finding("paused")
    assert (found is not None) is said
    if found is not None:
        assert [(named.name, named.about) for named in found.rows] == [("Invoices", "25 h, by anna: storage full")]


def test_a_schedule_that_was_never_active_is_not_paused() -> None:
    SchedulerFactory(off=True)
    assert finding("paused") is None


def test_a_skipped_occurrence_is_named_until_the_next_success() -> None:
    row = SchedulerFactory()
    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    SchedulerExecutionFactory(scheduler=row, skipped=True)
    SchedulerExecutionFactory(scheduler=row, skipped=True, reason="Missed 1 occurrence at 03:00 CET: no producer ran.")
    found = finding("skipped")
    assert found is not None
    assert [(named.pk, named.about) for named in found.rows] == [
        (row.pk, "Missed 1 occurrence at 03:00 CET: no producer ran.")
    ]
    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    assert finding("skipped") is None


def test_what_a_pause_left_out_needs_no_attention() -> None:
    row, now = SchedulerFactory(), clock.now()
    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    reason = paused(now - timedelta(hours=2), now, 2, now.tzinfo, "anna")
    SchedulerExecutionFactory(scheduler=row, skipped=True, reason=reason)
    assert finding("skipped") is None
    assert health_of(with_health(Scheduler.objects.all(), now).get(pk=row.pk)) is Health.HEALTHY


@pytest.mark.parametrize(("minutes", "said"), [(5, False), (30, True)])
def test_a_running_execution_that_is_slower_than_usual_is_named(minutes: int, said: bool) -> None:
    row, now = SchedulerFactory(), clock.now()
    for _run in range(6):
        SchedulerExecutionFactory(scheduler=row, succeeded=True, started_at=now - timedelta(minutes=2), finished_at=now)
    execution = SchedulerExecutionFactory(scheduler=row, running=True, started_at=now - timedelta(minutes=minutes))
    found = finding("slow")
    assert (found is not None) is said
    if found is not None:
        assert [(named.pk, named.about) for named in found.rows] == [(execution.pk, "30 min, usually 2 min")]


def test_a_schedule_that_failures_have_paused_is_named_until_it_is_resumed() -> None:
    row = SchedulerFactory(description="Invoices", pause_after_failures=1)
    run = SchedulerExecutionFactory(scheduler=row, failed=True)
    assert pause_failing([row.pk], clock.now()) == 1
    found = finding("paused by failures")
    assert found is not None
    said = f"1 failure; the last is execution {run.pk}."
    assert [(named.pk, named.about) for named in found.rows] == [(row.pk, said)]
    row.refresh_from_db()
    row.status = True
    row.save()
    assert finding("paused by failures") is None


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the other databases read a small table whatever its indexes")
def test_the_look_for_services_does_not_read_every_schedule() -> None:
    with connection.cursor() as cursor, CaptureQueriesContext(connection) as queries:
        assert services(NOON).first() is None
        cursor.execute(f"EXPLAIN QUERY PLAN {queries[0]['sql']}")
        plan = " ".join(step for *_place, step in cursor.fetchall())
    assert "scheduling_sched_services" in plan
