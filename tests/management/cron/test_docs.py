"""docs/commands.md names each verb, each kind of JSON and each exit code, and the examples of the docs can be read."""

from __future__ import annotations

import re
import shlex

import pytest
from django.core.management import load_command_class

from scheduling.management.cron.exit_codes import Exit
from scheduling.management.cron.verbs import VERBS
from tests.support import ROOT

PAGE = (ROOT / "docs" / "commands.md").read_text()
VERIFY = (ROOT / "docs" / "verify.md").read_text()
CODE = ROOT / "scheduling" / "management"


def test_each_verb_kind_and_exit_code_is_described() -> None:
    assert set(re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE)) == set(VERBS)
    sources = "".join(
        path.read_text() for path in [*CODE.rglob("*.py"), ROOT / "scheduling/monitoring/doctor/report.py"]
    )
    kinds = set(re.findall(r"console\.json\(\s*\"(\w+)\"|self\.json\(\"(\w+)\"|\"kind\": \"(\w+)\"", sources))
    names = {name for found in kinds for name in found if name}
    assert len(names) > 15
    assert {name for name in names if f"`{name}`" not in PAGE} == set()
    assert [code for code in Exit if f"\n| {int(code)} |" not in PAGE] == []


def test_the_examples_can_be_read() -> None:
    lines = re.findall(r"^\s*(?:\$ )?manage\.py (\w+) ?(.*?)(?:\s+#.*)?$", PAGE + VERIFY, re.MULTILINE)
    read = 0
    for command, arguments in lines:
        if command in ("cron", "doctor") and "…" not in arguments:
            words = shlex.split(arguments.partition(" > ")[0])
            load_command_class("scheduling", command).create_parser("manage.py", command).parse_args(words)
            read += 1
    assert read > 40


@pytest.mark.parametrize("page", ["commands.md", "verify.md", "llms.txt", "moving.md"])
def test_the_links_lead_somewhere(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    links = re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", text)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
    assert f"docs/{page}" in (ROOT / "README.md").read_text()
