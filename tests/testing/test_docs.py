"""The Python examples of the docs run as they are written. The tests among them pass."""

from __future__ import annotations

import builtins
import inspect
import unittest
from datetime import UTC, datetime
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone as clock
from pydantic import BaseModel
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from scheduling.core.cron import parse, upcoming
from scheduling.handlers import Run, Snooze, SoftTimeLimit, worker
from scheduling.handlers.targets import sync_targets
from scheduling.models import Scheduler, Worker
from scheduling.signals import execution_failed
from scheduling.tasks import known
from scheduling.tasks.discovery import know
from scheduling.tasks.framework import framework
from scheduling.testing import drain

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_handlers")]


class RegionParams(BaseModel):
    """The params of the workers that the examples name and do not define."""

    region: str = ""
    order: int = 0


def register_workers() -> Any:
    """Register the workers. Returns the last one."""
    for name in ("send_invoice", "send_invoices", "sync_tokens"):

        @worker(name, params=RegionParams)
        def noop(params: RegionParams, run: Run) -> None:
            """Does nothing."""

    return noop


@import_module(framework().root).task
def send_invoice(order: int, *, copy: bool = False) -> str:
    """The task of docs/tasks.md."""
    return f"{'a copy of ' if copy else ''}invoice {order}"


def names_of(page: str) -> dict[str, Any]:
    """The names that the examples of a page use and do not define."""
    if page == "api.md":
        sync_tokens = register_workers()
        order = SimpleNamespace(pk=7, save=lambda: None)
        return {
            "transaction": transaction, "order": order, "regions": ["eu", "us"], "trace_id": "0af7651916cd43dd",
            "sync_tokens": sync_tokens, "SyncParams": RegionParams,
        }  # fmt: skip
    if page == "handlers.md":
        params = ("Clean", "Fetch", "Import", "Month", "Order", "Pay", "Refresh", "Salary", "Sync")
        surroundings = {
            "HTTPError": OSError, "Path": Path, "path": Path("/"), "BytesIO": BytesIO, "data": b"", "orders": [],
            "client": SimpleNamespace(pages=lambda after: []), "Invoice": Group, "send": None,
            "Snooze": Snooze, "SoftTimeLimit": SoftTimeLimit,
            "run": Run(1, "manual-1", 1, 0, False, clock.now()),
        }  # fmt: skip
        return {f"{name}Params": RegionParams for name in params} | surroundings
    if page == "testing.md":
        know(send_invoice)
        return {"send_invoice": send_invoice}
    return {}


def run_tests(found: dict[str, Any], request: pytest.FixtureRequest) -> list[str]:
    """Run the tests that the examples define. Return their names."""
    ran = []
    for name, value in list(found.items()):
        if name.startswith("test_"):
            value(**{fixture: request.getfixturevalue(fixture) for fixture in inspect.signature(value).parameters})
            ran.append(name)
        elif inspect.isclass(value) and issubclass(value, unittest.TestCase) and value.__name__ != "TestCase":
            for method in unittest.defaultTestLoader.getTestCaseNames(value):
                with transaction.atomic():  # a TestCase would close the connection of this test
                    getattr(value(method), method)()
                    transaction.set_rollback(True)
                ran.append(method)
    return ran


@pytest.mark.parametrize("page", ["api.md", "handlers.md", "signals.md", "testing.md"])
def test_the_examples_of_a_page_run(page: str, request: pytest.FixtureRequest) -> None:
    make_nightly_cleanup()
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(DOCS / page)
    document.namespace.update(names_of(page))
    examples = list(document.examples())
    assert len(examples) == (DOCS / page).read_text().count("```python\n")
    for example in examples:
        drain()  # an example may wait for the run of an earlier one
        example.evaluate()
    document.namespace["__builtins__"] = builtins  # Sybil removes it; strftime needs it
    sync_targets()  # as `migrate` does before the tests of a project
    if page == "handlers.md":
        assert run_days(document.namespace["is_last_working_day"]) == [
            "01-29", "02-26", "03-31", "04-30", "05-31", "06-30", "07-30", "08-31", "09-30", "10-29", "11-30", "12-30",
        ]  # fmt: skip
    ran = run_tests(document.namespace, request)
    if page == "testing.md":
        assert ran == [
            "test_the_tokens_of_a_region_are_synced", "test_an_unreachable_region_is_tried_again",
            "test_a_region_that_is_unknown_fails_alone", "test_a_run_from_code",
            "test_the_error_of_a_handler_is_raised", "test_the_file_of_an_export", "test_nothing_is_asked_for",
            "test_a_month_with_a_clock_change", "test_retries", "test_the_night_in_which_the_clocks_skip_an_hour",
            "test_it_runs_on_weekdays", "test_with_fixtures",
        ]  # fmt: skip


def run_days(when: Any) -> list[str]:
    """The days of 2027 on which a schedule `0 18 22-31 * *` in Berlin has something to do."""
    info = ZoneInfo("Europe/Berlin")
    instants = upcoming(parse("0 18 22-31 * *"), info.key, datetime(2027, 1, 1, tzinfo=UTC), 113)
    runs = [Run(1, "cron-1", 1, 0, False, instant) for instant in instants]
    return [f"{run.scheduled_at.astimezone(info):%m-%d}" for run in runs if when({}, run) is True]


def make_nightly_cleanup() -> None:
    """The schedule that `migrate` makes, and that the other tests do without."""
    command, _made = Worker.objects.get_or_create(name="run_command")
    Scheduler.objects.create(worker=command, schedule="0 3 * * *", params={"command": "cleanup_executions"})


@pytest.fixture(autouse=True)
def own_tasks() -> Any:
    """Forget the task that the examples use."""
    yield
    known._known.pop(send_invoice.module_path, None)


@pytest.fixture(autouse=True)
def own_receivers() -> Any:
    """Disconnect the receivers that the examples connect."""
    before = list(execution_failed.receivers)
    yield
    execution_failed.receivers[:] = before
    execution_failed.sender_receivers_cache.clear()
