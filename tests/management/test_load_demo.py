"""`load_demo` makes the rows of the demo. A second call makes no more rows. test_up.py runs the demo's schedules."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import QuerySet

from cronsite.demo.management.commands.load_demo import DEMOS, REVIEW, REVIEW_CONTROLLER, Command
from reports.models import Report
from scheduling.models import Scheduler, SchedulerExecution, Worker

pytestmark = pytest.mark.django_db

TOTAL = len(DEMOS) + 1
"""The number of demo schedules: one for each entry of DEMOS, and one for the report that reviews failures."""


@pytest.fixture(autouse=True)
def _rows() -> None:
    for demo in DEMOS:
        Worker.objects.create(name=demo.worker)


def demos() -> QuerySet[Scheduler]:
    """Return the demo's schedules, without the schedules that migrations make."""
    return Scheduler.objects.filter(description__startswith="Demo: ")


def load(*, once: bool = False) -> str:
    """Run the command and return its output.

    The command is passed as an object, because the tests' settings do not install the command's app.
    """
    stream = io.StringIO()
    call_command(Command(), once=once, stdout=stream)
    return stream.getvalue()


def test_each_schedule_is_made_active_and_run_once() -> None:
    assert load() == f"Made the groups viewer, operator, editor, all-groups.\nMade {TOTAL} demo schedules.\n"
    for demo in DEMOS:
        scheduler = Scheduler.objects.get(description=demo.description)
        assert (scheduler.worker.name, scheduler.schedule, scheduler.status) == (demo.worker, demo.schedule, True)
        execution = SchedulerExecution.objects.get(scheduler=scheduler)
        assert (execution.trigger, execution.requested_by, execution.state) == ("manual", "load_demo", "queued")


def test_a_second_call_makes_only_missing_schedules() -> None:
    load()
    Scheduler.objects.get(description=DEMOS[0].description).executions.all().delete()
    Scheduler.objects.get(description=DEMOS[0].description).delete()
    assert load() == "Made 1 demo schedules.\n"
    assert load() == "All demo schedules are there.\n"
    assert demos().count() == TOTAL


def test_once_does_not_make_deleted_schedules_again() -> None:
    load(once=True)
    SchedulerExecution.objects.all().delete()
    demos().exclude(description=DEMOS[0].description).delete()
    assert load(once=True) == ""
    assert demos().count() == 1


def test_a_copy_with_the_same_description_is_allowed() -> None:
    load()
    copy = Scheduler.objects.get(description=DEMOS[0].description)
    copy.pk = None
    copy._state.adding = True
    copy.save()
    assert load() == "All demo schedules are there.\n"


def test_existing_groups_are_not_changed() -> None:
    load()
    operator = Group.objects.get(name="operator")
    operator.permissions.remove(Permission.objects.get(codename="discard_failedexecution"))
    Group.objects.get(name="editor").delete()
    assert load() == "Made the groups editor.\nAll demo schedules are there.\n"
    assert not operator.permissions.filter(codename="discard_failedexecution").exists()


def test_the_review_of_failures_comes_with_its_report() -> None:
    load()
    assert Scheduler.objects.get(description=REVIEW).report == Report.objects.get(controller=REVIEW_CONTROLLER)


def test_without_the_demos_code_the_error_names_the_setting() -> None:
    Worker.objects.filter(name=DEMOS[-1].worker).delete()
    with pytest.raises(CommandError, match="CRON_DEMO=1"):
        load()
    assert not demos().exists()
