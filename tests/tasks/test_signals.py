"""Django's signals tell of the start and of the end of a task, in the process that runs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.handlers import registry
from scheduling.handlers.error_rules import ErrorRules
from scheduling.models import Attempt, Output, SchedulerExecution
from scheduling.tasks import CronBackend
from scheduling.tasks.framework import framework
from scheduling.testing import drain, run_inline
from tests.apps.sample import tasks

pytestmark = pytest.mark.django_db

django = framework()
Seen = list[tuple[str, Any]]


@pytest.fixture
def seen() -> Iterator[Seen]:
    """The signals that are sent during the test, each with its TaskResult."""
    found: Seen = []

    def start(sender: Any, task_result: Any, **_more: Any) -> None:
        assert sender is CronBackend
        found.append(("started", task_result))

    def finish(sender: Any, task_result: Any, **_more: Any) -> None:
        assert sender is CronBackend
        found.append(("finished", task_result))

    django.task_started.connect(start)
    django.task_finished.connect(finish)
    yield found
    django.task_started.disconnect(start)
    django.task_finished.disconnect(finish)


def names(seen: Seen) -> list[tuple[str, str]]:
    return [(name, result.status) for name, result in seen]


@pytest.mark.parametrize("task", [tasks.echo, tasks.echo_later])
def test_a_task_that_succeeds(seen: Seen, task: Any) -> None:
    made = task.enqueue({"rows": [1]})
    drain()
    assert names(seen) == [("started", "RUNNING"), ("finished", "SUCCESSFUL")]
    (_, started), (_, finished) = seen
    assert (started.id, started.args, started.attempts, started.is_finished) == (made.id, [{"rows": [1]}], 1, False)
    assert (finished.return_value, finished.errors, finished.is_finished) == ({"rows": [1]}, [], True)
    made.refresh()
    assert (finished.worker_ids, finished.started_at) == (made.worker_ids, made.started_at)
    assert finished.finished_at is not None


def test_the_end_of_a_task_that_is_retried_is_the_end_of_its_last_attempt(seen: Seen) -> None:
    made = tasks.fail_often.enqueue()
    for number in range(1, 4):
        drain(raise_errors=False)
        assert len(seen) == number if number < 3 else 4
        SchedulerExecution.objects.filter(pk=made.id).update(wake_at=clock.now() - timedelta(seconds=1))
    assert names(seen) == [("started", "RUNNING")] * 3 + [("finished", "FAILED")]
    assert [result.attempts for _name, result in seen] == [1, 2, 3, 3]
    errors = seen[-1][1].errors
    assert [error.exception_class for error in errors] == [OSError] * 3
    made.refresh()
    assert errors[-1].traceback.endswith("OSError: not yet\n")
    assert len(made.errors) == 3


def test_an_error_that_is_not_retried_is_the_end_and_its_rule_is_asked_once(
    seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[BaseException] = []
    key = ("worker", tasks.with_options.module_path)
    handler = registry._handlers[key]
    rules = ErrorRules.of(retry_if=lambda error: bool(asked.append(error)))  # type: ignore[func-returns-value]
    monkeypatch.setitem(registry._handlers, key, replace(handler, errors=rules, soft_time_limit=None))
    tasks.with_options.enqueue("OSError")
    drain(raise_errors=False)
    assert names(seen) == [("started", "RUNNING"), ("finished", "FAILED")]
    assert len(asked) == 1


def test_a_task_that_has_nothing_to_do_does_not_start(seen: Seen) -> None:
    tasks.with_options.enqueue("nothing")
    (ran,) = drain()
    assert (ran.outcome, seen) == ("skipped", [])


@pytest.mark.parametrize(("code", "status"), [(None, "SUCCESSFUL"), (0, "SUCCESSFUL"), (3, "FAILED")])
def test_a_task_that_exits(seen: Seen, code: int | None, status: str) -> None:
    tasks.leave.enqueue(code)
    drain(raise_errors=False)
    assert names(seen) == [("started", "RUNNING"), ("finished", status)]


def test_an_error_of_a_receiver_changes_nothing(seen: Seen) -> None:
    def fail(**_arguments: Any) -> None:
        raise RuntimeError("of a receiver")

    for signal in (django.task_started, django.task_finished):
        signal.connect(fail)
    try:
        made = tasks.echo.enqueue(7)
        drain()
    finally:
        for signal in (django.task_started, django.task_finished):
            signal.disconnect(fail)
    made.refresh()
    assert (made.status, made.return_value, len(seen)) == ("SUCCESSFUL", 7, 2)
    text = "".join(Output.objects.filter(execution_id=made.id).values_list("text", flat=True))
    assert text.count("RuntimeError: of a receiver") == 2
    assert Attempt.objects.get(execution_id=made.id).outcome == "succeeded"


def test_the_log_line_of_an_error_has_its_traceback(seen: Seen) -> None:
    made = tasks.fail.enqueue("wrong")
    drain(raise_errors=False)
    text = "".join(Output.objects.filter(execution_id=made.id).values_list("text", flat=True))
    assert "state=FAILED" in text
    assert "ValueError: wrong" in text


def test_a_run_without_an_execution_sends_none(seen: Seen) -> None:
    other = tasks.echo.enqueue(1)
    for pk in (int(other.id), int(other.id) + 1):
        ran = run_inline(tasks.echo.module_path, {"args": [1]}, execution_id=pk)
        assert (ran.result, ran.lines) == (1, ())
    assert seen == []
