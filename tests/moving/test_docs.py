"""The examples of docs/moving.md can be read, and its loop resumes what was imported."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from django.core.management import load_command_class

from scheduling.management.moving.beat_items import TARGET_TYPES
from scheduling.models import Scheduler
from tests.management.cron.calls import cron
from tests.moving.calls import imported
from tests.support import ROOT

PAGES = "".join((ROOT / "docs" / name).read_text() for name in ("moving.md", "commands.md"))
COMMANDS = ("import_crontab", "import_celery_beat")


def test_the_examples_can_be_read() -> None:
    lines = re.findall(r"^manage\.py (\w+) ?(.*?)(?: \\)?$", (ROOT / "docs" / "moving.md").read_text(), re.MULTILINE)
    read = [command for command, arguments in lines if _parsed(command, arguments) is not None]
    assert set(read) == {*COMMANDS, "cron"}


def _parsed(command: str, arguments: str) -> Any:
    parser = load_command_class("scheduling", command).create_parser("manage.py", command)
    return parser.parse_args(shlex.split(arguments.partition(" | ")[0]))


@pytest.mark.parametrize("command", COMMANDS)
def test_each_option_is_described(command: str) -> None:
    parser = load_command_class("scheduling", command).create_parser("manage.py", command)
    usual = {"--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color"}
    options = {text for action in parser._actions for text in action.option_strings if text.startswith("--")}
    assert [text for text in options - usual - {"--skip-checks", "--help"} if f"`{text}" not in PAGES] == []
    assert all(f"`{type_}:NAME`" in PAGES for type_ in TARGET_TYPES)


def test_the_loop_of_the_page_resumes_what_was_imported_as_paused(tmp_path: Any, root: Any) -> None:
    file = tmp_path / "crontab"
    file.write_text("0 1 * * * python manage.py clearsessions\n")
    imported("import_crontab", file, "--timezone", "UTC", "--paused")
    paused = Scheduler.objects.get(name__startswith="crontab-")
    code = re.search(r"python3 -c '([^']+)'", PAGES)
    assert code is not None
    listed = cron("list", "--status", "paused", "--json", "--limit", "500").out
    told = subprocess.run([sys.executable, "-c", code[1]], input=listed, capture_output=True, text=True, check=True)
    assert told.stdout.split() == [str(paused.pk)]
    assert json.loads(listed)["kind"] == "schedules"
    assert cron("resume", paused.pk, "--as", "root").code == 0
    assert Scheduler.objects.get(pk=paused.pk).status
