"""Each state of an execution is a status of Django's TaskResult, and each failed attempt an error."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock
from django.utils.module_loading import import_string

from scheduling.core.lifecycle import State
from scheduling.models import Attempt, SchedulerExecution
from scheduling.tasks import AttemptEnded
from tests.apps.sample import tasks

pytestmark = pytest.mark.django_db

NOW = clock.now().replace(microsecond=0)
STATUSES = {
    "blocked": "READY", "claimed": "READY", "queued": "READY", "retrying": "READY", "running": "RUNNING",
    "succeeded": "SUCCESSFUL",
    "failed": "FAILED", "discarded": "FAILED", "cancelled": "FAILED", "skipped": "FAILED",
}  # fmt: skip


def moved(made: Any, state: str, **columns: Any) -> Any:
    """Change the row as a consumer would, and return the result as it is then."""
    SchedulerExecution.objects.filter(pk=made.id).update(state=state, **columns)
    made.refresh()
    return made


def attempt(made: Any, number: int, outcome: str, **columns: Any) -> None:
    times = {"started_at": NOW + timedelta(minutes=number), "finished_at": NOW + timedelta(minutes=number, seconds=5)}
    own = {"consumer": f"consumer {number}", "outcome": outcome}
    Attempt.objects.create(execution_id=int(made.id), number=number, **times, **own, **columns)


def test_each_state_has_a_status() -> None:
    assert STATUSES.keys() == set(State)
    for state, status in STATUSES.items():
        found = moved(tasks.accept.enqueue(), state, finished_at=NOW, reason="Left out.")
        assert found.status == status
        assert found.is_finished == (status in ("FAILED", "SUCCESSFUL"))
        assert (found.finished_at is None) == (not found.is_finished)
        assert len(found.errors) == (status == "FAILED")


def test_an_attempt_that_runs() -> None:
    found = moved(tasks.accept.enqueue(), "running", attempt=1, consumer="me", started_at=NOW)
    assert (found.attempts, found.worker_ids, found.started_at, found.last_attempted_at) == (1, ["me"], NOW, NOW)
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = found.return_value


def test_a_success_after_a_failure() -> None:
    made = tasks.accept.enqueue()
    attempt(made, 1, "failed", error_class="ValueError", error_message="no", traceback="Traceback\nValueError: no\n")
    ready = moved(made, "retrying", attempt=1)
    assert (ready.status, ready.attempts) == ("READY", 1)
    attempt(made, 2, "succeeded", result='{"rows": [1, null]}')
    found = moved(made, "succeeded", attempt=2, finished_at=NOW + timedelta(minutes=2, seconds=5))
    assert found.return_value == {"rows": [1, None]}
    assert found.worker_ids == ["consumer 1", "consumer 2"]
    assert (found.started_at, found.last_attempted_at) == (NOW + timedelta(minutes=1), NOW + timedelta(minutes=2))
    assert found.finished_at == NOW + timedelta(minutes=2, seconds=5)
    assert [(error.exception_class, error.traceback) for error in found.errors] == [
        (ValueError, "Traceback\nValueError: no\n")
    ]


def test_a_result_that_plain_sql_has_broken_is_none() -> None:
    made = tasks.accept.enqueue()
    attempt(made, 1, "succeeded", result="{")
    assert moved(made, "succeeded", attempt=1).return_value is None


@pytest.mark.parametrize(
    ("outcome", "name", "error"),
    [
        ("failed", "django.core.exceptions.ValidationError", "django.core.exceptions.ValidationError"),
        ("failed", "SystemExit", "builtins.SystemExit"),
        ("timed_out", "TimedOut", "scheduling.tasks.errors.AttemptEnded"),
        ("crashed", "Crashed", "scheduling.tasks.errors.AttemptEnded"),
        ("cancelled", "Cancelled", "scheduling.tasks.errors.AttemptEnded"),
        ("failed", "print", "scheduling.tasks.errors.AttemptEnded"),
        ("failed", "", "scheduling.tasks.errors.AttemptEnded"),
    ],
)
def test_the_class_of_an_error_can_be_imported(outcome: str, name: str, error: str) -> None:
    made = tasks.accept.enqueue()
    attempt(made, 1, outcome, error_class=name, error_message="It ended.")
    (found,) = moved(made, "failed", attempt=1, error_class=name).errors
    assert (found.exception_class_path, found.exception_class) == (error, import_string(error))
    assert found.traceback.endswith("It ended.\n")


def test_a_class_path_that_names_no_exception_is_refused() -> None:
    made = tasks.accept.enqueue()
    attempt(made, 1, "failed", error_class="subprocess.run")
    (found,) = moved(made, "failed", attempt=1).errors
    with pytest.raises(ValueError, match=r"'subprocess\.run' does not reference a valid exception\."):
        _ = found.exception_class


def test_an_interrupted_attempt_leaves_no_error() -> None:
    made = tasks.accept.enqueue()
    attempt(made, 1, "interrupted", error_class="Interrupted")
    found = moved(made, "queued", attempt=1)
    assert (found.status, found.errors, found.attempts) == ("READY", [], 1)


def test_a_run_that_ended_without_an_attempt_says_why() -> None:
    found = moved(tasks.accept.enqueue(), "cancelled", reason="Cancelled by ann.")
    assert [error.exception_class for error in found.errors] == [AttemptEnded]
    assert "Cancelled by ann." in found.errors[0].traceback
    with pytest.raises(ValueError, match="Task failed"):
        _ = found.return_value


@pytest.mark.parametrize("params", [[], "text", {}, {"args": 5, "kwargs": [1]}])
def test_params_that_plain_sql_has_broken_are_no_arguments(params: Any) -> None:
    made = tasks.accept.enqueue(1, two=2)
    SchedulerExecution.objects.filter(pk=made.id).update(params=params)
    found = tasks.accept.get_result(made.id)
    assert (found.args, found.kwargs) == ([], {})
