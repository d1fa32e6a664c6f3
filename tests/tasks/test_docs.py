"""The examples of docs/tasks.md run as they are written: settings, a module `tasks` of an app, and the calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import override_settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from scheduling.handlers import find, registry
from scheduling.tasks import known
from scheduling.tasks.discovery import discover_tasks
from scheduling.tasks.framework import framework
from scheduling.testing import drain

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"

pytestmark = pytest.mark.django_db


@pytest.fixture
def write_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Provide a function that installs an app with this module `tasks`. At the end, its tasks are forgotten."""
    monkeypatch.syspath_prepend(tmp_path)
    stores: list[dict[Any, Any]] = [registry._handlers, known._known]
    before = [dict(store) for store in stores]

    def write(name: str, code: str) -> Any:
        if framework().root == "django_tasks":  # as the comment of the example says
            code = code.replace("from django.tasks import", "from django_tasks import")
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "tasks.py").write_text(code)
        return override_settings(INSTALLED_APPS=[*apps_now(), name])

    yield write
    for store, former in zip(stores, before, strict=True):
        store.clear()
        store.update(former)
    for module in [name for name in sys.modules if name.partition(".")[0] in ("invoices", "reminders")]:
        del sys.modules[module]


def apps_now() -> list[str]:
    return [config.name for config in apps.get_app_configs()]


def settings_of(example: Any) -> Any:
    """The settings that an example makes, for the time of a test."""
    example.evaluate()
    return override_settings(TASKS=example.namespace["TASKS"])


def test_the_examples_run(write_app: Any) -> None:
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(PAGE)
    first_settings, first_app, enqueue, get_result, second_settings, second_app = list(document.examples())
    with settings_of(first_settings), write_app("invoices", first_app.parsed):
        discover_tasks()
        names = document.namespace
        names["send_invoice"] = sys.modules["invoices.tasks"].send_invoice
        enqueue.evaluate()
        assert names["result"].status == "READY"
        drain()
        get_result.evaluate()
        result = names["send_invoice"].get_result(names["result"].id)
        assert f'"{result.return_value}"' in get_result.parsed
    with settings_of(second_settings), write_app("reminders", second_app.parsed):
        discover_tasks()
        policy = find("worker", "reminders.tasks.send_reminder").retry
        assert policy is not None
        assert (policy.max_retries, policy.delay(1)) == (4, 10_000)
        sys.modules["reminders.tasks"].send_reminder.enqueue(7)
        assert drain()
