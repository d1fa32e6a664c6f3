"""docs/comparison.md has a source for each cell, and docs/kill-reports.md names tests and variables that exist."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS
from tests.support import ROOT

COMPARISON = (DOCS / "comparison.md").read_text()
KILLS = (DOCS / "kill-reports.md").read_text()
NOTE = re.compile(r"^\[\^([\w-]+)\]: (.*(?:\n    .*)*)", re.MULTILINE)


def cells_without_a_source(text: str) -> list[str]:
    """The cells of the tables of a text that have no footnote. The first cell of a row and the head need none."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    heads = {rows[index - 1] for index, row in enumerate(rows) if row.startswith("| ---")}
    found = []
    for row in rows:
        if row not in heads and not row.startswith("| ---"):
            cells = [cell.strip() for cell in row.strip("|").split(" | ")][1:]
            found += [cell for cell in cells if not re.search(r"(\[\^[\w-]+\] ?)+$", cell)]
    return found


def test_each_cell_of_the_table_has_a_source() -> None:
    table = COMPARISON[COMPARISON.index("## Table") : COMPARISON.index("## How to read it")]
    assert table.count("\n| ") > 15
    assert cells_without_a_source(table) == []
    losses = COMPARISON[COMPARISON.index("## What the others do better") : COMPARISON.index("## Table")]
    assert [row for row in losses.splitlines()[6:] if row.startswith("| ") and "[^" not in row] == []


def test_a_cell_without_a_source_is_found() -> None:
    table = "| | a | b |\n| --- | --- | --- |\n| zones | yes[^one] | no |\n"
    assert cells_without_a_source(table) == ["no"]


def test_each_source_is_used_and_names_a_version() -> None:
    notes = dict(NOTE.findall(COMPARISON))
    used = set(re.findall(r"\[\^([\w-]+)\](?!:)", COMPARISON))
    assert used == set(notes)
    without = [name for name, text in notes.items() if not re.search(r"\d+\.\d+", text) and name != "none"]
    assert without == []


def test_the_comparison_has_a_date_and_names_the_version_of_each_rival() -> None:
    assert re.search(r"^As of \d+ \w+ 20\d\d\.", COMPARISON, re.MULTILINE)
    versions = re.search(r"^Versions: (.*?)\n\n", COMPARISON, re.MULTILINE | re.DOTALL)
    assert versions is not None
    for note, text in NOTE.findall(COMPARISON):
        for package, version in re.findall(
            r"(django-ox|django-q2|procrastinate|django-celery-beat) (\d[\d.]*\d)", text
        ):
            assert f"{package} {version}" in versions[1], note


def test_the_kill_reports_name_files_and_variables_that_exist() -> None:
    sources = "".join(path.read_text() for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
    sources += (ROOT / "Makefile").read_text()
    files = set(re.findall(r"tests/[\w/]+\.py", KILLS))
    variables = set(re.findall(r"\b(?:TEST_[A-Z_]+|FUZZ)\b", KILLS))
    modules = set(re.findall(r"python -m (benchmarks\.\w+)", KILLS))
    assert len(files) > 10
    assert len(variables) > 10
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert [name for name in variables if name not in sources] == []
    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []
