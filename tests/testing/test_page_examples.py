"""The Python examples of the pages about settings, addresses and the first worker run as they are written.

Other pages have tests of their own, which give their examples what they need.
"""

from __future__ import annotations

import logging.config
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import django
import pytest
from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.core.files.storage import storages
from django.test import override_settings
from django.urls import Resolver404, include, path, resolve
from pydantic import BaseModel
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from scheduling import conf
from scheduling.handlers import find, worker
from scheduling.logs import get_logger
from scheduling.models import Attempt, Output, SchedulerExecution
from scheduling.operations.actor import Actor
from scheduling.operations.audit import record
from scheduling.testing import run_inline
from tests.docs import pages
from tests.factories import AttemptFactory, OutputFactory, SchedulerExecutionFactory, UserFactory
from tests.support import ROOT

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_handlers")]

ELSEWHERE = {
    "api.md": "tests/testing/test_docs.py",
    "channels.md": "tests/notify/test_channel_docs.py",
    "handlers.md": "tests/testing/test_docs.py",
    "moving.md": "tests/moving/test_docs.py",
    "signals.md": "tests/testing/test_docs.py",
    "tasks.md": "tests/tasks/test_docs.py",
    "testing.md": "tests/testing/test_docs.py",
}
"""The tests that run the examples of other pages."""

HERE = {
    "README.md",
    "brokers.md",
    "deployment.md",
    "guests.md",
    "http.md",
    "logging.md",
    "metrics.md",
    "operations.md",
    "security.md",
    "tutorial.md",
}


class RegionParams(BaseModel):
    """The params of the worker that an example names and does not define."""

    region: str


def examples(file: Path, **names: Any) -> tuple[list[Any], dict[str, Any]]:
    """The examples of a page, and the names that they share."""
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(file)
    document.namespace.update(names)
    found = list(document.examples())
    assert len(found) == file.read_text().count("```python\n")
    return found, document.namespace


def test_each_page_with_an_example_is_run_by_a_test() -> None:
    found = {page.name for page in [*pages.pages(), *pages.ABOVE] if "```python\n" in page.read_text()}
    assert found == HERE | set(ELSEWHERE)
    for page, test in ELSEWHERE.items():
        assert page in (ROOT / test).read_text(), page


@pytest.fixture
def own_logging() -> Iterator[None]:
    """Put the loggers back that an example configures."""
    loggers = [logging.getLogger(name) for name in ("scheduling", "reports")]
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        logger.handlers[:] = handlers
        logger.setLevel(level)


def test_the_worker_of_the_readme() -> None:
    found, names = examples(ROOT / "README.md")
    for example in found:
        if example.parsed.startswith('"OPTIONS":'):  # a part of a setting
            given = eval(f"{{{example.parsed}}}")  # noqa: S307 - a line of our own page
            assert given["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
        else:
            example.evaluate()
    assert {"scheduling", "reports"} < set(names["INSTALLED_APPS"][1:])
    assert run_inline("sync_tokens", {"region": "us"}).output == "syncing us\n"
    assert run_inline("sync_tokens", {"region": "moon"}).error_class.endswith("ParamsInvalid")


def test_the_worker_and_the_test_of_the_tutorial(tmp_path: Path) -> None:
    found, names = examples(pages.DOCS / "tutorial.md", BASE_DIR=tmp_path)
    for example in found:
        example.evaluate()
    assert {"scheduling", "reports", "orders"} == set(names["INSTALLED_APPS"])
    with override_settings(BASE_DIR=tmp_path):
        assert run_inline("import_orders").error_class == "FileNotFoundError"
    names["ImportTests"]("test_each_file_is_an_order").debug()
    policy = find("worker", "import_orders").retry
    assert policy is not None
    assert (policy.max_retries, policy.delay(1)) == (1, 1_000)


def test_queues_and_priorities() -> None:
    from scheduling.api import run

    (example,), _names = examples(pages.DOCS / "brokers.md", worker=worker, run=run)
    worker("sync_tokens", params=RegionParams)(lambda params, run: None)
    example.evaluate()
    handler = find("worker", "send_invoice")
    assert (handler.queue, handler.priority) == ("mail", "high")
    row = SchedulerExecution.objects.latest("pk")
    assert row.queue == "reports.low"


@pytest.mark.parametrize(("page", "address"), [("http.md", "/cron/schedulers"), ("metrics.md", "/metrics")])
def test_addresses(page: str, address: str) -> None:
    (example,), names = examples(pages.DOCS / page, include=include, path=path, urlpatterns=[], INSTALLED_APPS=[])
    example.evaluate()
    urls = ModuleType("urls_of_the_example")
    urls.__dict__["urlpatterns"] = [pattern for pattern in names["urlpatterns"] if pattern is not ...]
    assert resolve(address, urls).func  # type: ignore[arg-type]
    with pytest.raises(Resolver404):
        resolve("/nowhere", urls)  # type: ignore[arg-type]
    if page == "http.md":
        assert (names["CRON_API"], names["INSTALLED_APPS"]) == (True, ["ninja"])


def test_the_settings_of_a_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRON_BROKER_URL", raising=False)
    found, names = examples(pages.DOCS / "deployment.md")
    for example in found:
        example.evaluate()
    assert (names["CRON_BROKER_URL"], names["CRON_GRACE_SECONDS"]) == ("database://", 7_200)
    with override_settings(STORAGES=names["STORAGES"]):
        assert storages["artefacts"].location == "/srv/shop/artefacts"


@pytest.mark.usefixtures("own_logging")
def test_a_guest(tmp_path: Path) -> None:
    admin.autodiscover()
    found, names = examples(pages.DOCS / "guests.md", BASE_DIR=tmp_path, AppConfig=AppConfig)
    for example in found:
        if not example.parsed.startswith('"OPTIONS":'):  # a part of a setting
            example.evaluate()
    assert {"scheduling", "reports"} < set(names["INSTALLED_APPS"])
    with override_settings(CRON_BROKER_URL=names["CRON_BROKER_URL"]):
        assert conf.get_conf().broker_url.startswith("amqp://")
    assert names["LOGGING"]["root"]["handlers"] == ["console", "mail"]
    assert logging.config.DictConfigurator(deepcopy(names["LOGGING"]))
    assert names["ReportsConfig"].label == "reports"
    assert {model.__name__ for model in names["ops"]._registry} > {"Scheduler", "Worker", "Report"}


@pytest.mark.usefixtures("own_logging")
def test_the_logging_of_a_project(capsys: pytest.CaptureFixture[str]) -> None:
    sentry = SimpleNamespace(init=lambda **options: None)
    (first, own, second, third), names = examples(pages.DOCS / "logging.md", sentry_sdk=sentry)
    first.evaluate()
    logging.config.dictConfig(deepcopy(names["LOGGING"]))
    logging.getLogger("scheduling.consumer").warning("a retry")
    assert '"message": "a retry"' in capsys.readouterr().err
    own.evaluate()
    names["LOGGING"]["handlers"]["stderr"]["formatter"] = "own"
    logging.config.dictConfig(deepcopy(names["LOGGING"]))
    get_logger("scheduling.consumer").warning("it failed", extra={"execution": 41})
    logging.getLogger("scheduling.consumer").warning("of no run")
    told, plain = capsys.readouterr().err.splitlines()
    assert told.endswith("WARNING scheduling.consumer it failed {'execution': 41}")
    assert plain.endswith("WARNING scheduling.consumer of no run ")
    second.evaluate()
    event = {
        "logger": "scheduling.processes.failure_report",
        "extra": {"context": {"type": "worker", "id": 7}},
        "exception": {"values": [{"type": "ValueError"}]},
    }
    assert names["before_send"](event, {})["fingerprint"] == ["worker", "7", "ValueError"]
    third.evaluate()
    logging.config.dictConfig(deepcopy(names["LOGGING"]))
    kinds = [type(handler).__name__ for handler in logging.getLogger("scheduling").handlers]
    assert kinds == ["StreamHandler", "AdminEmailHandler"]


def test_the_data_of_one_customer_are_deleted() -> None:
    gone = SchedulerExecutionFactory(succeeded=True, params={"customer": 4711})
    open_run = SchedulerExecutionFactory(params={"customer": 4711})
    other = SchedulerExecutionFactory(succeeded=True, params={"customer": 4712})
    (_secret, example), _names = examples(pages.DOCS / "security.md")
    example.evaluate()
    left = set(SchedulerExecution.objects.values_list("pk", flat=True))
    assert (gone.pk in left, open_run.pk in left, other.pk in left) == (False, True, True)


def test_a_secret_that_was_printed_is_removed_from_one_run() -> None:
    for pk in (4711, 4712):
        run = SchedulerExecutionFactory(pk=pk, error_message="secret", progress="secret")
        OutputFactory(execution=run, text="secret")
        AttemptFactory(execution=run, error_message="secret", traceback="secret")
    (example, _customer), _names = examples(pages.DOCS / "security.md")
    example.evaluate()
    runs = SchedulerExecution.objects.order_by("pk").values_list("error_message", "progress")
    attempts = Attempt.objects.order_by("execution_id").values_list("error_message", "traceback")
    assert list(runs) == list(attempts) == [("removed", ""), ("secret", "secret")]
    assert list(Output.objects.values_list("execution", "text")) == [(4712, "secret")]


def test_the_actions_of_a_time_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    user, run = UserFactory(username="anna"), SchedulerExecutionFactory()
    record(Actor(user, "command"), [run], "republish")
    record(Actor(user, "command"), [user], "of another app")
    LogEntry.objects.update(action_time="2026-09-30T23:59Z")
    record(Actor(user, "command"), [run], "later")
    (_policy, listing, _limits), _names = examples(pages.DOCS / "operations.md")
    listing.evaluate()
    (line,) = capsys.readouterr().out.splitlines()
    expected = ["anna", "schedulerexecution", str(run.pk), str(run), "republish (command)"]
    assert line.split("\t")[1:] == expected


def test_the_policy_of_content_and_the_limits_of_connections() -> None:
    (policy, _listing, limits), names = examples(pages.DOCS / "operations.md")
    compile(policy.parsed, "operations.md", "exec")
    if django.VERSION >= (6,):  # Django 5.2 has no such module
        policy.evaluate()
        assert set(names["SECURE_CSP"]) == {"default-src", "object-src", "frame-ancestors"}
    limits.evaluate()
    options = names["DATABASES"]["default"]["OPTIONS"]
    assert (options["your"], options["connect_timeout"]) == ("options", 3)
