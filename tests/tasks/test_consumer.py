"""A real consumer runs tasks: their results, their failures and what their context says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from scheduling.api import wait
from scheduling.handlers import SoftTimeLimit
from scheduling.models import FailedExecution, Output, SchedulerExecution, Worker
from scheduling.tasks import AttemptEnded, ReturnValueInvalid
from scheduling.tasks.framework import framework
from tests.apps.sample import helpers, tasks
from tests.support import Commands

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

django = framework()


def stranger(name: str) -> SchedulerExecution:
    """Insert, as plain SQL could, an execution of a worker's row that names this code."""
    row = SchedulerExecution.objects.get(pk=int(tasks.accept.enqueue().id))
    target = Worker.objects.create(name=name)
    SchedulerExecution.objects.filter(pk=row.pk).update(target_id=target.pk, target_name=name)
    return row


def said(result: Any) -> list[str]:
    """The states in the lines that Django's own receivers of the signals have written into the output of the run."""
    outputs = Output.objects.filter(execution_id=int(result.id)).order_by("attempt", "sequence")
    line = rf" Task id={result.id} path={re.escape(result.task.module_path)} state=(\w+)"
    return re.findall(line, "".join(outputs.values_list("text", flat=True)))


def test_a_consumer_runs_tasks_and_keeps_what_became_of_them(commands: Commands) -> None:
    good = [
        (tasks.accept.enqueue(1, two=3), None),
        (tasks.accept_async.enqueue(), None),
        (tasks.echo.enqueue({"rows": [1, "é", None]}), {"rows": [1, "é", None]}),
        (tasks.echo.enqueue(0, twice=True), [0, 0]),
        (tasks.echo_later.enqueue(7), 7),
        (helpers.imported_task.enqueue(), "imported"),
    ]
    counted = [tasks.count_workers.enqueue() for _ in range(9)]
    told = tasks.tell.enqueue("word")
    workers = Worker.objects.count()
    consumer = commands.start("run_worker", "--concurrency", "2")
    for made in (*(made for made, _value in good), told, *counted):
        wait(int(made.id), 90)
        made.refresh()
    # After those, because a child that is killed for its time gets a successor with another process id.
    late = tasks.sleep_long.enqueue()
    error, exit_, often = tasks.fail.enqueue("wrong"), tasks.leave.enqueue("left"), tasks.fail_often.enqueue()
    odd, large = tasks.give_function.enqueue(), tasks.give_much.enqueue()
    code = [stranger(name) for name in ("os.system", "tests.apps.sample.helpers.lonely_task")]
    failed = (error, exit_, often, odd, large, late)
    for made in failed:
        wait(int(made.id), 90)
        made.refresh()
    wanted = [tasks.with_options.enqueue(word) for word in ("yes", "nothing", "wait", "ValueError")]
    for made in wanted:
        wait(int(made.id), 90)
        made.refresh()
    assert commands.stop(consumer) == 0

    for made, value in good:
        assert (made.status, made.return_value, made.attempts, made.errors) == ("SUCCESSFUL", value, 1, [])
        assert made.enqueued_at <= made.started_at <= made.finished_at
    assert told.return_value == ["word", 1, told.id, "RUNNING", ["word"], 1]
    assert {made.return_value[0] for made in counted} == {workers}
    # Two children run, two are restored after their runs, and one is spare. Otherwise each run has a new child.
    assert len({made.return_value[1] for made in counted}) <= 5, "a coroutine leaves its child as it was"

    assert FailedExecution.objects.filter(state="failed", pk__in=[made.id for made in failed]).count() == len(failed)
    assert [made.status for made in failed] == ["FAILED"] * len(failed)
    assert [made.attempts for made in failed] == [1, 1, 3, 1, 1, 1]
    assert (error.errors[0].exception_class, exit_.errors[0].exception_class) == (ValueError, SystemExit)
    assert error.errors[0].traceback.endswith("ValueError: wrong\n")
    assert [found.exception_class for found in often.errors] == [OSError] * 3
    assert late.errors[0].exception_class is AttemptEnded
    assert "cleaned up" in "".join(SchedulerExecution.objects.get(pk=late.id).outputs.values_list("text", flat=True))
    for made, words in ((odd, "Unsupported type"), (large, "70,002 bytes")):
        assert made.errors[0].exception_class is ReturnValueInvalid
        assert issubclass(ReturnValueInvalid, TypeError)
        assert words in made.errors[0].traceback
    assert [said(made) for made in wanted] == [["RUNNING", "SUCCESSFUL"], [], *[["RUNNING", "FAILED"]] * 2]
    assert [made.status for made in wanted] == ["SUCCESSFUL", "FAILED", "FAILED", "FAILED"]
    assert SchedulerExecution.objects.get(pk=wanted[1].id).reason == "Left out by its handler: It was not wanted."
    assert wanted[2].errors[0].exception_class is SoftTimeLimit
    for made, _value in good:
        assert said(made) == ["RUNNING", "SUCCESSFUL"]
    assert [said(made) for made in (error, often, late)] == [
        ["RUNNING", "FAILED"],
        ["RUNNING"] * 3 + ["FAILED"],
        ["RUNNING"],
    ]
    assert not SchedulerExecution.objects.filter(pk__in=[row.pk for row in code], state="succeeded").exists()
