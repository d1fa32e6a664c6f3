"""Which tasks become known, and as what workers. The package can be imported without the framework."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps

from scheduling import project_checks
from scheduling.core.retry import RetryPolicy
from scheduling.handlers import UnknownHandler, find, registry
from scheduling.handlers.contract import contract
from scheduling.handlers.params import ParamsInvalid, validate
from scheduling.tasks import discovery, known, task_options
from scheduling.tasks.discovery import discover_tasks
from scheduling.tasks.framework import framework
from scheduling.tasks.params import params_model
from tests.apps.sample import tasks
from tests.support import ROOT

NAME = "tests.apps.sample.tasks"


@pytest.fixture
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what Django's start has found, until the end of the test."""
    with monkeypatch.context() as patch:
        patch.setattr(known, "_known", {})
        patch.setattr(registry, "_handlers", {})
        yield


def test_a_task_is_a_worker() -> None:
    handler = find("worker", f"{NAME}.echo")
    assert (handler.name, handler.description) == (f"{NAME}.echo", "Returns its argument.")
    assert (handler.retry, handler.time_limit) == (None, None)
    assert handler.params.model_fields["args"].description == "echo(value, *, twice=…)"
    assert (handler.call.__module__, handler.call.__qualname__) == (NAME, "echo")


def test_a_task_has_the_options_of_a_worker() -> None:
    handler = find("worker", f"{NAME}.with_options")
    assert handler.retry is not None
    assert (handler.retry.max_retries, [handler.retry.delay(number) for number in (1, 2, 3)]) == (2, [1000, 2000, 5000])
    limits = (handler.time_limit, handler.soft_time_limit, handler.memory_limit)
    assert (limits, handler.when, handler.title) == ((60, 0.2, 500), tasks.is_wanted, "Wanted")
    assert handler.description.startswith("Returns its argument, or raises")
    assert (handler.errors.may_retry(FileNotFoundError()), handler.errors.may_retry(KeyError())) == (True, False)


def test_the_params_are_the_arguments() -> None:
    handler = find("worker", f"{NAME}.echo")
    validate(handler, {"args": [1], "kwargs": {"twice": True}})
    for wrong in ({}, {"args": [1, 2]}, {"kwargs": {"other": 1}}, {"args": 1}, {"args": [1], "value": 2}):
        with pytest.raises(ParamsInvalid):
            validate(handler, wrong)
    validate(find("worker", f"{NAME}.tell"), {"args": ["word"]})


def test_another_signature_is_another_contract() -> None:
    def first(value: object) -> None: ...

    def second(value: object, more: object = None) -> None: ...

    second.__name__ = first.__name__
    hashes = set()
    for function in (first, second):
        hashes.add(contract(registry.Handler("worker", "tests.own", function, params_model(function, False))))
    assert len(hashes) == 2


@pytest.mark.parametrize("name", ["lonely_task", "accept", "fail"])
def test_a_task_that_no_module_shows_is_not_known(name: str) -> None:
    with pytest.raises(UnknownHandler):
        find("worker", f"tests.apps.sample.helpers.{name}")


def test_options_of_a_task_and_of_its_backend(settings: Any, nothing_known: None) -> None:
    options = {"max_attempts": 5, "backoff": timedelta(seconds=2), "time_limit": 30}
    settings.TASKS = {"default": {"BACKEND": "scheduling.tasks.CronBackend", "OPTIONS": options}}
    discover_tasks()
    usual, own = find("worker", f"{NAME}.echo"), find("worker", f"{NAME}.fail_often")
    assert (usual.retry, usual.time_limit) == (RetryPolicy(max_retries=4, delay_ms=2000), 30)
    assert (own.retry, own.time_limit) == (RetryPolicy(max_retries=2, delay_ms=1000), 60)
    assert find("worker", f"{NAME}.fail").retry == RetryPolicy(max_retries=0, delay_ms=2000)


def test_options_that_cannot_be_used() -> None:
    with pytest.raises(TypeError, match="no argument delay"):
        task_options(delay=3)  # type: ignore[call-arg]
    for wrong in ({"max_attempts": 21}, {"backoff": 3601}, {"time_limit": 1.5}, {"retry_on": "ValueError"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            task_options(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "setting",
    [None, {}, {"default": {"BACKEND": "does.not.exist"}}, {"default": {}}, {"default": {"BACKEND": "os.system"}}],
)
def test_without_this_backend_no_module_is_imported(
    settings: Any, nothing_known: None, monkeypatch: pytest.MonkeyPatch, setting: Any
) -> None:
    def fail(name: str) -> None:
        raise AssertionError(f"{name} is looked for")

    monkeypatch.setattr(discovery, "autodiscover_modules", fail)
    settings.TASKS = setting
    discover_tasks()
    assert not known._known


@pytest.mark.parametrize("backend", ["scheduling.tasks.CronBackend", "other.Backend"])
def test_modules_with_tasks_that_cannot_run_are_told(
    settings: Any, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    settings.TASKS = {"default": {"BACKEND": backend}}
    assert project_checks.check_tasks() == []  # the framework is installed
    monkeypatch.setattr(project_checks, "find_spec", lambda name: None)
    found = project_checks.check_tasks()
    if backend == "other.Backend":
        assert found == []
        return
    (warning,) = found
    assert warning.id == "scheduling.W008"
    assert NAME in warning.msg
    assert "extra `tasks`" in str(warning.hint)
    with_no_tasks = [each for each in apps.get_app_configs() if each.name != NAME.removesuffix(".tasks")]
    monkeypatch.setattr(apps, "get_app_configs", lambda: with_no_tasks)
    assert project_checks.check_tasks() == []  # such as the ready-made site, whose settings have the backend


def test_tasks_of_another_backend_are_not_known(settings: Any, nothing_known: None) -> None:
    other = f"{framework().root}.backends.dummy.DummyBackend"
    settings.TASKS = {"default": {"BACKEND": other}, "second": {"BACKEND": "scheduling.tasks.CronBackend"}}
    discover_tasks()
    assert not known._known
    assert tasks.echo.enqueue(1).status == framework().Status.READY


WITHOUT = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "django_tasks" or name.startswith("django.tasks"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ("django.tasks", "django_tasks") else found(name)
import django
django.setup()
import scheduling.tasks
from scheduling.handlers import handlers
print(hasattr(scheduling.tasks, "CronBackend"), [h.name for h in handlers("worker") if ".tasks." in h.name])
"""

EARLY = """
import django
from django.apps import apps
from scheduling.tasks.framework import framework
assert not apps.ready
print(framework().task_backends["default"].__class__.__name__)
"""

NO_TASKS = """
import sys
import django
django.setup()
print("scheduling.tasks.framework" in sys.modules)
"""


@pytest.mark.parametrize(("program", "output"), [(WITHOUT, "False []"), (EARLY, "CronBackend"), (NO_TASKS, "False")])
def test_the_framework_is_away_or_loaded_early_or_not_needed(program: str, output: str) -> None:
    environment = {"DJANGO_SETTINGS_MODULE": "cronsite.settings", "SECRET_KEY": "tests", "ENV_FILE": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={"PYTHONPATH": ":".join(sys.path), **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == output, done.stderr
