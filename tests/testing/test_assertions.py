"""`assert_scheduled` finds runs that code has asked for, and schedules; its errors say what there is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduling.api import run
from scheduling.handlers import UnknownHandler
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.testing import assert_not_scheduled, assert_scheduled
from tests.apps.sample import workers
from tests.apps.sample.reports import Rows
from tests.factories import ReportFactory, SchedulerExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db

NEW_YEAR = datetime(2100, 1, 1, tzinfo=UTC)


def test_a_run_is_found_by_its_params_its_instant_and_its_key() -> None:
    first = run("tests.typed", {"since_days": 7}, key="weekly")
    later = run("tests.typed", workers.SyncParams(since_days=8), at=NEW_YEAR)
    assert assert_scheduled(workers.typed).pk == first.id
    assert assert_scheduled("tests.typed", {"since_days": 8}).pk == later.id
    assert assert_scheduled("tests.typed", workers.SyncParams(since_days=7)).pk == first.id
    assert assert_scheduled("tests.typed", at=NEW_YEAR).pk == later.id
    assert assert_scheduled("tests.typed", key="weekly").pk == first.id
    for conditions in ({"params": {"since_days": 9}}, {"key": "daily"}, {"cron": "0 8 * * *"}):
        assert_not_scheduled("tests.typed", **conditions)  # type: ignore[arg-type]
    assert_not_scheduled("tests.noop")


def test_a_schedule_is_found_by_its_target_and_its_times() -> None:
    daily = SchedulerFactory(handler="tests.typed", schedule="0 8 * * *", params={"since_days": 3})
    once = SchedulerFactory(handler="tests.typed", schedule="", date_time=NEW_YEAR)
    SchedulerFactory(handler="tests.noop", off=True)
    report = SchedulerFactory(of_report=True, report=ReportFactory(controller="tests.rows"))
    assert assert_scheduled("tests.typed", cron="0 8 * * *") == daily
    assert assert_scheduled("tests.typed", {"since_days": 3}) == daily
    assert assert_scheduled("tests.typed", at=NEW_YEAR) == once
    assert assert_scheduled(Rows) == report
    assert_not_scheduled("tests.noop")
    assert_not_scheduled("tests.typed", key="weekly")


def test_runs_of_schedules_and_operators_were_not_asked_for_by_code() -> None:
    SchedulerExecutionFactory()
    assert_not_scheduled("tests.noop", at=SchedulerExecution.objects.get().scheduled_at)
    Scheduler.objects.update(status=False)
    assert_not_scheduled("tests.noop")


def test_an_error_says_what_there_is() -> None:
    with pytest.raises(AssertionError, match=r"of worker 'tests\.typed'\. No run of any handler was asked for\.$"):
        assert_scheduled("tests.typed")
    run("tests.noop")
    with pytest.raises(AssertionError, match=r"Runs were asked for of other handlers: 'tests\.noop'\.$"):
        assert_scheduled("tests.typed")
    made = run("tests.typed", {"since_days": 7}, at=NEW_YEAR)
    row = SchedulerFactory(handler="tests.typed", params={"since_days": 3})
    with pytest.raises(AssertionError) as caught:
        assert_scheduled("tests.typed", {"since_days": 8}, key="weekly")
    assert str(caught.value) == (
        "No run was asked for and no schedule exists of worker 'tests.typed' with params={'since_days': 8}, "
        f"key='weekly'. There is run {made.id} at 2100-01-01 00:00:00+00:00 with params {{'since_days': 7}}, queued; "
        f"schedule {row.pk} '0 8 * * *' with params {{'since_days': 3}}."
    )
    with pytest.raises(AssertionError, match=f"There is run {made.id} at"):
        assert_not_scheduled("tests.typed")
    with pytest.raises(UnknownHandler):
        assert_scheduled("tests.typo")
