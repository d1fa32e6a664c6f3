"""Tests of the dashboard's part "Needs attention". The part shows findings, and is empty if there are no findings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone as clock

from scheduling.models import Process, Scheduler, SchedulerExecution
from tests.admin.dashboard.conftest import address
from tests.factories import ProcessFactory, ReportFactory, SchedulerExecutionFactory, SchedulerFactory, WorkerFactory

Context = Callable[[str], dict[str, Any]]


NO_PRODUCER = "No producer is alive: no schedule runs."
REPEATEDLY = "Schedules that failed 3 or more times in a row"
NO_CONSUMER = "No consumer is alive: all runs wait."


def problems(context: Context) -> dict[str, list[str]]:
    """Map each finding that the part shows to the names of the affected rows."""
    return {
        problem["finding"].seen: [line["row"].name for line in problem["rows"]]
        for problem in context("attention")["problems"]
    }


def test_the_part_is_empty_without_findings(context: Context, viewer: Client, at_work: None) -> None:
    SchedulerExecutionFactory(succeeded=True)
    assert problems(context) == {}
    assert viewer.get(address("attention")).content.decode().strip() == ""


def test_no_process_at_all(context: Context) -> None:
    assert list(problems(context)) == [NO_PRODUCER, NO_CONSUMER]


def test_a_stopped_process_does_not_count_as_alive_nor_as_silent(context: Context) -> None:
    ProcessFactory(stopped=True)
    ProcessFactory(stopped=True, producer=True)
    assert list(problems(context)) == [NO_PRODUCER, NO_CONSUMER]


def test_a_silent_process_is_named_for_a_day(context: Context, at_work: None) -> None:
    silent = ProcessFactory(silent=True)
    assert problems(context) == {"Processes that lost contact: 1.": [f"consumer {silent.container_id}"]}
    Process.objects.filter(pk=silent.pk).update(heartbeat_at=clock.now() - timedelta(days=2))
    assert problems(context) == {}


def test_a_standalone_schedule_needs_a_standalone_consumer(context: Context, at_work: None) -> None:
    SchedulerFactory(stay_alive=True)
    assert problems(context) == {"No standalone consumer is alive. Services that do not run: 1.": []}
    ProcessFactory(info={"queue": "standalone"})
    assert problems(context) == {}


def test_a_schedule_is_overdue_after_one_minute(context: Context, at_work: None) -> None:
    late, fresh = SchedulerFactory(), SchedulerFactory()
    Scheduler.objects.filter(pk=late.pk).update(next_run_at=clock.now() - timedelta(seconds=90))
    Scheduler.objects.filter(pk=fresh.pk).update(next_run_at=clock.now() - timedelta(seconds=5))
    assert problems(context) == {
        "Late schedules that no producer has claimed: 1, the oldest for 1 min 30 s.": [late.description]
    }


def test_a_paused_schedule_is_not_overdue(context: Context, at_work: None) -> None:
    row = SchedulerFactory(off=True)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=clock.now() - timedelta(seconds=90))
    assert problems(context) == {}


def test_a_schedule_that_cannot_be_planned_says_why(context: Context, at_work: None) -> None:
    row = SchedulerFactory()
    Scheduler.objects.filter(pk=row.pk).update(plan_error="Hour: '25' is outside 0-23.", next_run_at=None)
    assert problems(context) == {"Schedules that will not run until they are fixed: 1.": [row.description]}
    assert context("attention")["problems"][0]["rows"][0]["row"].about == "Hour: '25' is outside 0-23."


def test_an_active_schedule_without_a_next_run(context: Context, at_work: None) -> None:
    row = SchedulerFactory()
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=None)
    assert problems(context) == {"Active schedules without a next run: 1.": [row.description]}


@pytest.mark.parametrize(("outcomes", "said"), [("sfff", True), ("fffs", False), ("ffsf", False), ("ffrf", True)])
def test_a_schedule_is_failing_after_three_failures_in_a_row(
    context: Context, at_work: None, outcomes: str, said: bool
) -> None:
    row = SchedulerFactory()
    traits = {"s": "succeeded", "f": "failed", "r": "running"}
    for outcome in outcomes:
        SchedulerExecutionFactory(scheduler=row, **{traits[outcome]: True})
    found = {seen: names for seen, names in problems(context).items() if not seen.startswith("Failures in the inbox")}
    assert found == ({f"{REPEATEDLY}: 1.": [row.description]} if said else {})


@pytest.mark.parametrize("columns", [{"worker": "gone.worker"}, {"report": "gone.report"}])
def test_a_target_without_code(context: Context, at_work: None, columns: dict[str, str]) -> None:
    if "worker" in columns:
        row = SchedulerFactory(worker=WorkerFactory(name=columns["worker"]))
    else:
        row = SchedulerFactory(worker=None, report=ReportFactory(controller=columns["report"]))
    assert problems(context) == {"Active schedules whose code is not registered here: 1.": [row.description]}


def test_a_queue_is_shown_when_its_oldest_run_has_waited_five_minutes(context: Context, at_work: None) -> None:
    row = SchedulerExecutionFactory()
    assert problems(context) == {}
    SchedulerExecution.objects.filter(pk=row.pk).update(wake_at=clock.now() - timedelta(minutes=6))
    assert list(problems(context)) == ["Runs waiting in the queue “main”: 1, the oldest for 6 min."]


def test_five_rows_are_named_and_the_others_are_counted(context: Context, viewer: Client, at_work: None) -> None:
    for _number in range(8):
        SchedulerFactory()
    Scheduler.objects.filter(description__startswith="Schedule").update(next_run_at=None)
    problem = context("attention")["problems"][0]
    assert (len(problem["rows"]), str(problem["finding"].more)) == (5, "3")
    assert "and 3 more" in viewer.get(address("attention")).content.decode()


def test_the_number_of_queries_does_not_grow_with_the_findings(
    context: Context, django_assert_max_num_queries: Any
) -> None:
    for _number in range(12):
        row = SchedulerFactory()
        for _run in range(3):
            SchedulerExecutionFactory(scheduler=row, failed=True)
        Scheduler.objects.filter(pk=row.pk).update(next_run_at=None)
    with django_assert_max_num_queries(20, connection=connection):
        context("attention")
