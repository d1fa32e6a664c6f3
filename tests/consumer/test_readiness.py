"""A handler that is not ready is asked again; what it says is recorded."""

from __future__ import annotations

import pytest
from django.utils import timezone as clock

from scheduling.core.health import Health
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from scheduling.models.health import health_of, with_health
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands

LEFT_OUT = "Left out by its handler: "

pytestmark = [pytest.mark.processes, pytest.mark.any_database, pytest.mark.django_db(transaction=True)]


def one(handler: str, **params: object) -> SchedulerExecution:
    return ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, max_retries=0, params=params))


def test_a_run_that_snoozes_is_started_again_and_has_all_its_retries(commands: Commands) -> None:
    run, wrong = one("tests.snooze"), one("tests.snooze_wrongly")
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", "4")
    assert code == 0, log
    run.refresh_from_db()
    assert (run.state, run.attempt, run.snoozes) == ("succeeded", 3, 2)
    first, second, third = Attempt.objects.filter(execution=run)
    assert (first.outcome, first.error_class, first.error_message) == ("snoozed", "", "the file is not there yet")
    assert (second.outcome, second.error_message) == ("snoozed", "The handler is not ready yet.")
    assert (third.outcome, third.result) == ("succeeded", '"retry 0, last True"')
    assert second.started_at > first.finished_at
    assert "Task snoozed for 1s: the file is not there yet" in log
    wrong.refresh_from_db()
    assert (wrong.state, wrong.error_class) == ("failed", "TypeError")


def test_a_run_with_nothing_to_do_is_skipped_with_the_sentence_of_its_handler(commands: Commands) -> None:
    answers = [True, False, "There are no new files.", "raise", None, 1, " "]
    runs = [one("tests.when", answer=answer) for answer in answers]
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", str(len(runs)))
    assert code == 0, log
    ends = []
    for run in runs:
        run.refresh_from_db()
        end = Attempt.objects.get(execution=run)
        ends.append((run.state, end.outcome, end.result or end.error_message, run.reason))
    refused = "The function `when` must return True, False or a sentence, not {}."
    gave_up = "Retries are off."
    assert ends == [
        ("succeeded", "succeeded", '"called"', ""),
        ("skipped", "skipped", LEFT_OUT + "there is nothing to do.", LEFT_OUT + "there is nothing to do."),
        ("skipped", "skipped", LEFT_OUT + "There are no new files.", LEFT_OUT + "There are no new files."),
        ("failed", "failed", "no folder", gave_up),
        ("failed", "failed", refused.format("NoneType"), gave_up),
        ("failed", "failed", refused.format("int"), gave_up),
        ("failed", "failed", refused.format("str"), gave_up),
    ]
    skipped = runs[2]
    assert (skipped.error_class, skipped.finished_at is not None) == ("", True)
    assert skipped.scheduler is not None
    assert (
        health_of(with_health(Scheduler.objects.filter(pk=skipped.scheduler_id), clock.now()).get())
        is not Health.SKIPPED
    )
    assert f"Task skipped: {LEFT_OUT}There are no new files." in log
