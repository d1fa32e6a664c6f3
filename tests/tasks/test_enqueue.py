"""Django's Task, with this backend: what it accepts, what it refuses, and what an enqueue stores."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.checks import run_checks
from django.db import transaction
from django.utils import timezone as clock
from django.utils.module_loading import import_string

from scheduling.models import SchedulerExecution, Worker
from scheduling.tasks import CronBackend
from scheduling.tasks.framework import framework
from tests.apps.sample import helpers, tasks

pytestmark = pytest.mark.django_db

django = framework()
PATH = "scheduling.tasks.CronBackend"


def row(result: Any) -> SchedulerExecution:
    return SchedulerExecution.objects.get(pk=int(result.id))


def both_ways(task: Any, *args: Any, **kwargs: Any) -> list[Any]:
    """Enqueue a task from plain code and from a coroutine."""
    return [task.enqueue(*args, **kwargs), async_to_sync(task.aenqueue)(*args, **kwargs)]


def test_the_backend_of_the_settings() -> None:
    backend = django.task_backends["default"]
    assert isinstance(backend, CronBackend)
    assert (backend.alias, backend.options, tasks.accept.get_backend()) == ("default", {}, backend)
    flags = (backend.supports_defer, backend.supports_async_task, backend.supports_get_result)
    assert flags == (True, True, True)
    assert backend.supports_priority
    assert list(backend.check()) == []
    assert [found for found in run_checks() if "task" in str(found).lower()] == []


@pytest.mark.parametrize("task", [tasks.accept, tasks.accept_async, tasks.echo])
def test_a_task_is_djangos_own(task: Any) -> None:
    assert type(task) is django.Task
    assert task.module_path == f"tests.apps.sample.tasks.{task.name}"
    assert import_string(task.module_path) is task
    assert task.using() == task
    assert task.using() is not task


@pytest.mark.parametrize("task", [tasks.accept, tasks.accept_async])
def test_an_enqueue_makes_an_execution(task: Any) -> None:
    for result in both_ways(task, 1, two=3):
        assert (result.status, result.is_finished, result.attempts) == (django.Status.READY, False, 0)
        assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
        assert (result.task, result.args, result.kwargs, result.errors) == (task, [1], {"two": 3}, [])
        with pytest.raises(ValueError, match="Task has not finished yet"):
            _ = result.return_value
        stored = row(result)
        assert (stored.state, stored.trigger, stored.type) == ("queued", "code", "worker")
        assert (stored.target_name, stored.params) == (task.module_path, {"args": [1], "kwargs": {"two": 3}})
        assert stored.executed_at == result.enqueued_at
        assert stored.target_id == Worker.objects.get(name=task.module_path).pk


def test_an_enqueue_is_part_of_the_callers_transaction() -> None:
    with transaction.atomic():
        made = tasks.accept.enqueue()
        assert made.enqueued_at is not None
        assert row(made)
        transaction.set_rollback(True)
    assert not SchedulerExecution.objects.exists()


def test_an_enqueue_is_signalled(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    def see(sender: Any, task_result: Any, **_kwargs: Any) -> None:
        seen.append((sender, task_result.id))

    django.task_enqueued.connect(see)
    try:
        made = tasks.accept.enqueue()
    finally:
        django.task_enqueued.disconnect(see)
    assert seen == [(CronBackend, made.id)]


@pytest.mark.parametrize("value", [datetime(2026, 3, 10), {1, 2}, object(), lambda: True])
def test_arguments_that_are_not_json_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.accept.enqueue(value)
    with pytest.raises(TypeError, match="Unsupported type"):
        async_to_sync(tasks.accept.aenqueue)(word=value)
    assert not SchedulerExecution.objects.exists()


@pytest.mark.parametrize("value", [float("nan"), "\x00", "\ud800", "x" * 2_000_000, 2**70])
def test_arguments_that_a_database_cannot_store_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="parameters"):
        tasks.accept.enqueue(value)
    assert not SchedulerExecution.objects.exists()


def test_arguments_become_json() -> None:
    made = tasks.accept.enqueue((1, b"two"), three={"four": (5,)})
    assert (made.args, made.kwargs) == ([[1, "two"]], {"three": {"four": [5]}})
    assert row(made).params == {"args": [[1, "two"]], "kwargs": {"three": {"four": [5]}}}


@pytest.mark.parametrize(
    ("task", "args", "kwargs"),
    [(tasks.echo, (), {}), (tasks.echo, (1, 2), {}), (tasks.echo, (1,), {"thrice": True}), (tasks.tell, (), {})],
)
def test_arguments_that_do_not_fit_the_function_are_an_error_at_the_call(task: Any, args: Any, kwargs: Any) -> None:
    with pytest.raises(TypeError, match=f"{task.name}.*cannot be called"):
        task.enqueue(*args, **kwargs)
    assert not SchedulerExecution.objects.exists()


def test_the_earliest_start() -> None:
    at = clock.now() + timedelta(hours=2)
    made = tasks.accept.using(run_after=at).enqueue()
    assert (made.status, made.task.run_after) == (django.Status.READY, at)
    assert (row(made).scheduled_at, row(made).wake_at) == (at, at)
    assert tasks.accept.get_result(made.id) == made
    assert tasks.accept.run_after is None
    with pytest.raises(django.InvalidTask, match=r"run_after must be an aware datetime\."):
        tasks.accept.using(run_after=datetime(2030, 1, 1))


def test_an_earliest_start_in_the_past_means_now() -> None:
    made = tasks.accept.using(run_after=clock.now() - timedelta(days=1)).enqueue()
    assert row(made).scheduled_at == row(made).executed_at == made.enqueued_at


@pytest.mark.parametrize(
    ("priority", "queue", "as_read"),
    [(100, "main.high", 1), (1, "main.high", 1), (0, "main", 0), (-1, "main.low", -1), (-100, "main.low", -1)],
)
def test_the_priorities_of_django_are_three_here(priority: int, queue: str, as_read: int) -> None:
    made = tasks.accept.using(priority=priority).enqueue()
    assert (row(made).queue, made.task.priority) == (queue, priority)
    assert tasks.accept.get_result(made.id).task.priority == as_read


@pytest.mark.parametrize("priority", [101, -101, 3.1])
def test_each_other_priority_is_refused(priority: float) -> None:
    with pytest.raises(django.InvalidTask, match=r"priority must be a whole number between -100 and 100\."):
        tasks.accept.using(priority=priority)


def test_a_task_names_a_queue_of_its_backend(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": PATH, "QUEUES": ["default", "mail"]}}
    made = tasks.accept.using(queue_name="mail", priority=7).enqueue()
    assert row(made).queue == "mail.high"
    assert tasks.accept.get_result(made.id).task.queue_name == "mail"
    usual = tasks.accept.enqueue()
    assert (row(usual).queue, tasks.accept.get_result(usual.id).task.queue_name) == ("main", "default")
    settings.TASKS = {"default": {"BACKEND": PATH}}  # the setting was changed meanwhile
    assert tasks.accept.get_result(made.id).task.queue_name == "default"


@pytest.mark.parametrize("queues", [None, [], ["default"]])
def test_each_other_queue_is_refused(settings: Any, queues: list[str] | None) -> None:
    settings.TASKS = {"default": {"BACKEND": PATH} | ({} if queues is None else {"QUEUES": queues})}
    with pytest.raises(django.InvalidTask, match=r"Queue 'mail' is not valid for backend\."):
        tasks.accept.using(queue_name="mail")
    assert tasks.accept.using(queue_name="default").enqueue().status == django.Status.READY


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"QUEUES": ["default", "Mail"]}, "Mail"),
        ({"QUEUES": ["cron_scheduler_failed"]}, "cron_"),
        ({"QUEUES": ["standalone"]}, "belongs to the services"),
        ({"QUEUES": [7]}, "7"),
        ({"OPTIONS": {"max_retries": 3}}, "max_retries"),
        ({"OPTIONS": {"max_attempts": 0}}, "from 1 to 20"),
        ({"OPTIONS": {"max_attempts": True}}, "from 1 to 20"),
        ({"OPTIONS": {"backoff": "soon"}}, "'soon' is none of constant, linear, exponential"),
        ({"OPTIONS": {"backoff": [10, 0]}}, "retry 2 must be a number of seconds from 1 to 3600, not 0"),
        ({"OPTIONS": {"backoff": float("nan")}}, "seconds"),
        ({"OPTIONS": {"backoff": 0}}, "delay"),
        ({"OPTIONS": {"time_limit": -1}}, "time_limit"),
    ],
)
def test_settings_that_the_backend_cannot_use_are_refused(settings: Any, more: dict[str, Any], words: str) -> None:
    settings.TASKS = {"default": {"BACKEND": PATH, **more}}
    with pytest.raises(django.InvalidTaskBackend, match=words):
        tasks.accept.enqueue()


def test_backends_that_do_not_exist(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": PATH}, "missing": {"BACKEND": "does.not.exist"}}
    with pytest.raises(django.InvalidTaskBackend, match=r"The connection 'unknown' doesn't exist\."):
        tasks.accept.using(backend="unknown")
    with pytest.raises(django.InvalidTaskBackend, match=r"Could not find backend 'does\.not\.exist'"):
        tasks.accept.using(backend="missing")


def test_a_task_of_another_backend_does_not_run_here(settings: Any) -> None:
    settings.TASKS = {name: {"BACKEND": PATH} for name in ("default", "second")}
    with pytest.raises(django.InvalidTask, match="differs"):
        tasks.accept.using(backend="second").enqueue()
    made = tasks.accept.enqueue()
    with pytest.raises(django.TaskResultDoesNotExist):
        django.task_backends["second"].get_result(made.id)


def test_a_task_outside_of_the_modules_that_are_found_is_an_error_at_the_call() -> None:
    with pytest.raises(django.InvalidTask, match=r"helpers\.lonely_task is not known"):
        helpers.lonely_task.enqueue()
    assert helpers.imported_task.enqueue().status == django.Status.READY
    assert tasks.variant.enqueue(1).task == tasks.echo
    assert SchedulerExecution.objects.count() == 2


def test_functions_that_are_no_tasks() -> None:
    def local() -> None:
        """Has no import path."""

    for function in (any, local):
        with pytest.raises(django.InvalidTask, match=r"Task function must be defined at a module level\."):
            tasks.task()(function)
    with pytest.raises(django.InvalidTask, match="does not have a first argument of 'context'"):
        tasks.task(takes_context=True)(tasks.echo.func)


def test_an_import_path_that_is_too_long_for_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def function() -> None:
        """Gets a longer name."""

    function.__qualname__ = "f" * 100
    with pytest.raises(django.InvalidTask, match=f"{len(__name__) + 101} characters"):
        tasks.task(function)


def test_a_direct_call() -> None:
    assert tasks.echo.call(42) == async_to_sync(tasks.echo.acall)(42) == 42
    assert tasks.echo_later.call(42) == async_to_sync(tasks.echo_later.acall)(42) == 42


def test_the_result_of_an_enqueue_is_found_again() -> None:
    made = tasks.accept.enqueue(1, two=[3])
    assert tasks.accept.get_result(made.id) == made == async_to_sync(tasks.accept.aget_result)(made.id)
    assert django.task_backends["default"].get_result(made.id) == made
    before = dataclasses.asdict(made)
    made.refresh()
    async_to_sync(made.arefresh)()
    assert dataclasses.asdict(made) == before
    for get in (tasks.echo.get_result, async_to_sync(tasks.echo.aget_result)):
        with pytest.raises(django_mismatch(), match="Task does not match"):
            get(made.id)


def django_mismatch() -> type[Exception]:
    return import_string(f"{django.root}.exceptions.TaskResultMismatch")  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "wrong", ["123", "", "-1", "1.0", " 1", "1_0", "٣", "²", "9" * 19, "9" * 5000, "x", "\x00", None, 7]
)
def test_an_id_that_no_result_has(wrong: Any) -> None:
    for get in (tasks.accept.get_result, async_to_sync(tasks.accept.aget_result)):
        with pytest.raises(django.TaskResultDoesNotExist):
            get(wrong)


@pytest.mark.parametrize("columns", [{"target_name": "tests.noop"}, {"target_name": "os.system"}, {"type": "report"}])
def test_an_execution_of_another_worker_is_no_result(columns: dict[str, str]) -> None:
    made = tasks.accept.enqueue()
    SchedulerExecution.objects.filter(pk=made.id).update(**columns)
    with pytest.raises(django.TaskResultDoesNotExist):
        tasks.accept.get_result(made.id)
