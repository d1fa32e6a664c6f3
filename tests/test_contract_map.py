"""The map of the original contract names each requirement once, and names only tests that exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "original-contract-map.md"

REQUIREMENTS = {"S0": 68, "S1": 82, "S2": 26, "S4": 39, "C": 16}
"""How many requirements each document has. They are numbered from 1."""

NUMBER = re.compile(r"\b(S\d|C)\.(\d+)\b")
NODE = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
MARKS = ("not yet", "differently: ", "no test of its own: ")


class Row(NamedTuple):
    """A row of a table of requirements."""

    requirements: list[tuple[str, int]]
    words: str
    shown_by: str


def rows() -> list[Row]:
    """Return the rows of the page that name requirements."""
    found = []
    for line in PAGE.read_text().splitlines():
        if (numbers := NUMBER.findall(line.split("|")[1])) if line.startswith("| ") else None:
            _, first, words, shown_by, _ = re.split(r"(?<!\\)\|", line)
            assert not NUMBER.sub("", first).strip(" ,"), line
            found.append(
                Row([(document, int(number)) for document, number in numbers], words.strip(), shown_by.strip())
            )
    return found


@lru_cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests in a file; no names if the file does not exist."""
    file = ROOT / path
    tree = ast.parse(file.read_text() if file.exists() else "")
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


def test_each_requirement_is_on_the_page_once() -> None:
    named = Counter(requirement for row in rows() for requirement in row.requirements)
    wanted = {(document, number) for document, count in REQUIREMENTS.items() for number in range(1, count + 1)}
    assert sorted(wanted - set(named)) == []
    assert sorted(set(named) - wanted) == []
    assert [requirement for requirement, count in named.items() if count > 1] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: ".".join(map(str, row.requirements[0])))
def test_each_requirement_names_tests_that_exist_or_a_reason(row: Row) -> None:
    assert row.words
    named = NODE.findall(row.shown_by)
    missing = [f"{path}::{name}" for path, name in named if name not in names_in(path)]
    assert missing == []
    assert named or row.shown_by.startswith(MARKS)
    assert row.shown_by.count("::") == len(named), "a node id is malformed"
    if row.shown_by.startswith("differently"):
        assert named or row.shown_by.endswith("no test of its own"), "a difference has a test, too"
