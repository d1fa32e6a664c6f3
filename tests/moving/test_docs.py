"""The examples of docs/moving.md can be read and run, and its command resumes what was imported."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from celery import Celery
from django.core.management import load_command_class
from django.utils import translation
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from scheduling.core.timetables import parse
from scheduling.handlers import NoParams, find, registry
from scheduling.management.moving.beat_items import TARGET_TYPES
from scheduling.models import Scheduler
from scheduling.testing import run_inline
from tests.factories import SchedulerFactory, WorkerFactory
from tests.management.cron.calls import cron
from tests.moving.calls import imported
from tests.support import ROOT

PAGE = (ROOT / "docs" / "moving.md").read_text()
PAGES = "".join((ROOT / "docs" / name).read_text() for name in ("moving.md", "commands.md"))
COMMANDS = ("import_crontab", "import_celery_beat")


def test_the_examples_can_be_read() -> None:
    lines = re.findall(r"^manage\.py (\w+) ?(.*?)(?: \\)?$", (ROOT / "docs" / "moving.md").read_text(), re.MULTILINE)
    read = [command for command, arguments in lines if _parsed(command, arguments) is not None]
    assert set(read) == {*COMMANDS, "cron"}


def _parsed(command: str, arguments: str) -> Any:
    parser = load_command_class("scheduling", command).create_parser("manage.py", command)
    return parser.parse_args(shlex.split(arguments.partition(" | ")[0]))


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The project of the page: a Celery app with two tasks. Yields the app, whose broker keeps messages in memory."""
    app = Celery("shop", broker="memory://", backend="cache+memory://", set_as_current=False)

    @app.task(name="shop.tasks.send", shared=False)  # shared: in each other app, too
    def send(invoice: int) -> str:
        return f"sent {invoice}"

    @app.task(name="shop.tasks.total", shared=False)
    def total(region: str = "eu") -> str:
        return region

    package, tasks, celery = (ModuleType(name) for name in ("shop", "shop.tasks", "shop.celery"))
    tasks.__dict__["send"], celery.__dict__["app"] = send, app
    for module in (package, tasks, celery):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "_handlers", {})
    yield app
    app.close()


def test_the_handlers_of_the_page_run_a_task_or_send_it(shop: Any) -> None:
    page = ROOT / "docs" / "moving.md"
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(page)
    document.namespace.update(NoParams=NoParams, total=shop.tasks["shop.tasks.total"])
    here, there, loop = document.examples()
    here.evaluate()
    assert run_inline("shop.tasks.send", {"invoice": 7}).outcome == "succeeded"
    there.evaluate()
    sent = run_inline("shop.tasks.total")
    assert (sent.outcome, len(sent.result)) == ("succeeded", 36)
    registry._handlers.clear()
    loop.evaluate()
    for name, params in (("shop.tasks.send", {"invoice": 8}), ("shop.tasks.total", {"region": "us"})):
        assert find("worker", name).params.__name__ == "AnyParams"
        assert run_inline(name, params).outcome == "succeeded"
    with shop.connection() as connection:
        queue = connection.SimpleQueue("celery")
        assert [queue.get(timeout=1).payload[1] for _number in range(3)] == [{}, {"invoice": 8}, {"region": "us"}]


def test_the_entry_of_a_django_q2_schedule_is_applied(shop: Any, root: Any, tmp_path: Any) -> None:
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(ROOT / "docs" / "moving.md")
    next(iter(document.examples())).evaluate()
    WorkerFactory(name="shop.tasks.send")
    entry = re.search(r"```yaml\n(.*?)```", PAGE.partition("## django-q2")[2], re.DOTALL)
    assert entry is not None
    file = tmp_path / "schedules.yaml"
    file.write_text(entry[1])
    assert cron("apply", str(file), "--source", "shop", "--as", "root").code == 0
    made = Scheduler.objects.get(name="send-the-invoices")
    assert (made.schedule, made.timezone, made.params) == ("0 8 * * *", "Europe/Berlin", {"invoice": 7})


def test_the_times_of_the_django_q2_table_are_valid() -> None:
    table = PAGE.partition("| django-q2 | here |")[2].partition("## ")[0]
    times = re.findall(r"`(@every [^`…]+|[\dL]+ [\dL]+ [^` ]+ [^` ]+ [^` ]+)`", table)
    assert len(times) == 8
    for text in times:
        parse(text)  # raises CronError


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_is_described(command: str) -> None:
    parser = load_command_class("scheduling", command).create_parser("manage.py", command)
    usual = {"--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}
    options = {text for action in parser._actions for text in action.option_strings if text.startswith("--")}
    assert [text for text in options - usual - {"--skip-checks", "--help"} if f"`{text}" not in PAGES] == []
    assert all(f"`{type_}:NAME`" in PAGES for type_ in TARGET_TYPES)


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_command_of_the_page_resumes_what_was_imported_as_paused(tmp_path: Any, root: Any, language: str) -> None:
    file = tmp_path / "crontab"
    file.write_text("0 1 * * * python manage.py clearsessions\n0 2 * * * python manage.py clearsessions\n")
    other = SchedulerFactory(status=False, pause_reason="The warehouse moves")
    with translation.override(language):
        imported("import_crontab", file, "--timezone", "UTC", "--paused")
        command = re.search(r"^manage\.py cron (resume --imported .*)$", PAGE, re.MULTILINE)
        assert command is not None
        ended = cron(*command[1].replace("anna", "root").split())
        again = cron("resume", "--imported", "--json")
    paused = Scheduler.objects.filter(name__startswith="crontab-")
    assert ended.code == 0
    assert re.search(r"\b2\b", ended.out), ended.out
    assert [row.status for row in paused] == [True, True]
    assert (again.code, again.json["kind"], again.json["resumed"]) == (0, "resumed", [])
    other.refresh_from_db()
    assert other.status is False
