"""`Changes` notices each statement that may change a schedule, and none of those that keep all schedules."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction
from pydantic import BaseModel

from scheduling.api import run
from scheduling.handlers import Run, worker
from scheduling.models import Output, Scheduler, SchedulerExecution, Worker
from scheduling.testing import drain, travel
from scheduling.testing.changes import Changes
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def undo() -> None:
    saved = transaction.savepoint()
    transaction.savepoint_rollback(saved)


CHANGES: dict[str, Callable[[], object]] = {
    "a schedule is made": SchedulerFactory,
    "a schedule is changed": lambda: Scheduler.objects.update(schedule="0 9 * * *"),
    "a schedule and its next run are changed": lambda: Scheduler.objects.update(next_run_at=None, status=False),
    "a schedule is removed": lambda: Scheduler.objects.all().delete(),
    "a worker is changed": lambda: Worker.objects.update(params={"a": 1}),
    "a group is changed": lambda: Group.objects.update(name="x"),
    "plain SQL": lambda: sql("update scheduling_scheduler set status = status"),
    "plain SQL with a comment": lambda: sql("/* mend */ UPDATE scheduling_scheduler SET status = status"),
    "a common table expression": lambda: sql("WITH one AS (SELECT 1) SELECT * FROM one"),
    "something is undone": undo,
}

KEEPS: dict[str, Callable[[], object]] = {
    "schedules are read": lambda: list(Scheduler.objects.all()),
    "schedules are locked": lambda: list(Scheduler.objects.select_for_update()),
    "executions are changed": lambda: SchedulerExecution.objects.update(reason="x"),
    "output is removed": lambda: Output.objects.all().delete(),
    "a savepoint": lambda: transaction.savepoint_commit(transaction.savepoint()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed(name: str) -> None:
    SchedulerFactory()
    changes = Changes()
    with changes.counted():
        CHANGES[name]()
    assert changes.rows > 0
    assert changes.plans >= changes.rows
    before = changes.plans
    CHANGES[name]()
    assert changes.plans == before, "nothing is counted after the block"


@pytest.mark.parametrize("name", KEEPS)
def test_what_keeps_all_schedules_is_not_counted(name: str) -> None:
    SchedulerExecutionFactory()
    changes = Changes()
    with changes.counted():
        KEEPS[name]()
    assert (changes.plans, changes.rows) == (0, 0)


def test_a_claim_changes_only_when_schedules_are_due() -> None:
    SchedulerFactory()
    changes = Changes()
    with changes.counted():
        Scheduler.objects.filter(status=True).update(next_run_at=None)
    assert (changes.plans, changes.rows) == (1, 0)


@pytest.mark.django_db(transaction=True)
def test_a_change_of_another_thread_is_noticed() -> None:
    changes = Changes()

    def change() -> None:
        Group.objects.create(name="of a thread")
        connection.close()

    with changes.counted():
        thread = threading.Thread(target=change)
        thread.start()
        thread.join()
    assert changes.rows > 0


@pytest.mark.usefixtures("own_handlers")
def test_a_run_sees_what_the_run_before_it_has_changed() -> None:
    @worker("testing.edits")
    def edits(params: BaseModel, run: Run) -> None:
        Worker.objects.filter(name="tests.give").update(params={"value": 2})

    WorkerFactory(name="tests.give", params={"value": 1})
    Worker.objects.filter(name="tests.give").update(params={"value": 1})
    for name in ("tests.give", "testing.edits", "tests.give"):
        run(name)
    assert [ran.result for ran in drain()] == [1, None, 2]


@pytest.mark.usefixtures("own_handlers")
def test_a_schedule_that_a_handler_makes_runs_at_its_time() -> None:
    @worker("testing.makes")
    def makes(params: BaseModel, run: Run) -> None:
        SchedulerFactory(schedule="30 6 * * *", timezone="UTC")

    with travel("2026-03-10T00:00:00Z") as clock:
        SchedulerFactory(schedule="0 20 * * *", timezone="UTC")
        run("testing.makes", delay=3600)
        found = clock.forward(hours=10)
    assert [(ran.handler, ran.scheduled_at.hour) for ran in found] == [("testing.makes", 1), ("tests.noop", 6)]
