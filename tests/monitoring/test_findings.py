"""`doctor` and the dashboard show the same findings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import RequestFactory
from django.utils import timezone as clock

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.dashboard.attention import attention
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.monitoring.doctor.examine import examine
from scheduling.monitoring.findings.areas import AREAS, problems
from scheduling.monitoring.findings.finding import Level
from scheduling.monitoring.findings.present import Present
from tests.factories import (
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows_with_problems() -> None:
    """Make rows with one example of each problem."""
    now = clock.now()
    ProcessFactory(silent=True)
    SchedulerFactory(stay_alive=True)
    SchedulerFactory(worker=WorkerFactory(name="not.registered.here"))
    for columns in (
        {"next_run_at": None, "plan_error": "Minute: 99 is above 59."},
        {"next_run_at": None},
        {"next_run_at": now - timedelta(minutes=10)},
    ):
        Scheduler.objects.filter(pk=SchedulerFactory().pk).update(**columns)
    failing = SchedulerFactory()
    for _ in range(3):
        SchedulerExecutionFactory(scheduler=failing, failed=True)
    SchedulerExecutionFactory(wake_at=now - timedelta(minutes=6))
    SchedulerExecutionFactory(claimed=True, wake_at=now - timedelta(minutes=3))
    SchedulerExecutionFactory(running=True, wake_at=now - timedelta(minutes=3))


CHECKS = {
    "code", "plans", "next run", "late", "failing", "producers", "consumers", "standalone", "silent", "queued",
    "claimed", "leases", "inbox",
}  # fmt: skip


def test_doctor_and_dashboard_say_the_same(rows_with_problems: None) -> None:
    now = clock.now()
    request = RequestFactory().get("/")
    request.user = UserFactory(is_superuser=True)
    shown = [problem["finding"] for problem in attention(Viewer.of(request))["problems"]]
    told = [finding for _area, finding in examine(now, list(AREAS)) if finding.level is not Level.OK]
    assert {finding.check for finding in shown} == CHECKS
    assert sorted((finding.check, finding.level, finding.seen, finding.advice) for finding in shown) == sorted(
        (finding.check, finding.level, finding.seen, finding.advice) for finding in told
    )
    assert all(finding.advice for finding in shown)


def test_failures_come_before_warnings(rows_with_problems: None) -> None:
    levels = [finding.level for finding in problems(Present(clock.now()))]
    assert levels == sorted(levels, key=[Level.FAIL, Level.WARN].index)


def test_only_the_first_of_many_rows_are_named() -> None:
    for _ in range(8):
        SchedulerFactory()
    Scheduler.objects.filter(description__startswith="Schedule").update(next_run_at=None)
    (finding,) = [finding for finding in problems(Present(clock.now())) if finding.check == "next run"]
    assert finding.seen == "Active schedules without a next run: 8."
    assert len(finding.rows) == 5
    assert finding.in_full.endswith(" and 3 more.")


def test_a_standalone_consumer_alone_serves_no_other_queue() -> None:
    ProcessFactory(producer=True)
    ProcessFactory(info={"queue": "standalone"})
    assert [finding.check for finding in problems(Present(clock.now()))] == ["consumers"]


def test_a_consumer_without_a_heartbeat_may_serve_any_queue() -> None:
    ProcessFactory(producer=True)
    ProcessFactory(info={})
    SchedulerFactory(stay_alive=True)
    assert problems(Present(clock.now())) == []


def test_the_number_of_queries_does_not_depend_on_the_rows(
    rows_with_problems: None, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    for _ in range(10):
        ProcessFactory(silent=True)
        SchedulerFactory(worker=WorkerFactory())
    with django_assert_max_num_queries(35):
        problems(Present(clock.now()))


def test_a_service_that_ends_three_times_in_a_row_is_named_with_its_last_error() -> None:
    row = SchedulerFactory(stay_alive=True, handler="tests.noop")
    run = SchedulerExecutionFactory(scheduler=row, queue="standalone", retrying=True, attempt=3, error_class="OSError")
    SchedulerExecutionFactory(retrying=True, attempt=9)  # no service
    assert [finding for finding in problems(Present(clock.now())) if finding.check == "services"] == []
    SchedulerExecution.objects.filter(pk=run.pk).update(attempt=4)
    (finding,) = [finding for finding in problems(Present(clock.now())) if finding.check == "services"]
    assert finding.seen == "Services that ended 3 or more times in a row: 1."
    assert [(named.name, named.about, named.pk) for named in finding.rows] == [
        ("tests.noop", "3 restarts, the last end: OSError", run.pk)
    ]


def test_a_service_that_has_not_run_yet_or_has_run_for_an_hour_needs_no_attention() -> None:
    """MariaDB and MySQL refuse a subtraction of unsigned columns with a negative result."""
    row, now = SchedulerFactory(stay_alive=True, handler="tests.noop"), clock.now()
    SchedulerExecutionFactory(scheduler=row, queue="standalone", state="queued", attempt=0)
    SchedulerExecutionFactory(scheduler=row, queue="standalone", state="queued", attempt=1, retry_base=1)
    run = SchedulerExecutionFactory(scheduler=row, queue="standalone", running=True, attempt=4, retry_base=0)
    for lasted, count in ((timedelta(minutes=59), 1), (timedelta(minutes=61), 0)):
        SchedulerExecution.objects.filter(pk=run.pk).update(started_at=now - lasted)
        found = [finding for finding in problems(Present(now)) if finding.check == "services"]
        assert len(found) == count
