"""Each sentence that the software stores is one that it knows again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import translation

import scheduling
from scheduling.core import skip_reasons
from scheduling.core.known_sentences import MODULES, in_language
from scheduling.core.skip_reasons import SkipReason
from tests.languages.stored_makers import MAKERS, literals, skips

ROOT = Path(scheduling.__file__).parent


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_each_sentence_that_is_made_is_known(maker: Callable[[], Iterator[str]]) -> None:
    made = list(maker())
    assert made
    with translation.override("de"):
        said = {text: in_language(text) for text in made}
    assert [text for text in made if said[text] == text] == []
    assert [text for text in said.values() for piece in literals() if piece in text] == []


@pytest.mark.parametrize("kind", SkipReason)
def test_each_kind_of_skip_is_known(kind: SkipReason) -> None:
    text = skips()[kind]
    assert skip_reasons.kind_of(text) is kind
    with translation.override("de"):
        said = in_language(text)
    assert said != text
    assert [piece for piece in literals() if piece in said] == []


STORED = {"reason", "error_message", "pause_reason", "plan_error", "note", "detail", "held_reason"}
"""Columns, and names of arguments that become columns."""
SAID = {"GiveUp", "Stop", "Impossible", "Hold", "Refused", "NotSent", "Unsure", "Unreachable", "Ending", "Forbidden"}
"""Classes whose argument becomes a column."""
WRITERS = [
    "alerts", "broker", "consumer", "core", "execution", "inbox", "notify", "pings", "policies", "processes",
    "producer", "workers",
]  # fmt: skip
"""The folders of the code that writes rows in the background."""


def test_no_stored_sentence_is_written_beside_the_known_ones() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for folder in WRITERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in stored_values(ast.parse(path.read_text()))
        if has_words(node)
    ]
    assert wrong == []


def stored_values(tree: ast.AST) -> Iterator[ast.expr]:
    """The expressions that become the value of such a column."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in STORED:
            yield node.value
        elif isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            yield from (value for key, value in zip(keys, node.values, strict=True) if key in STORED)
        elif isinstance(node, ast.Assign):
            names = {getattr(target, "id", getattr(target, "attr", "")) for target in node.targets}
            yield from [node.value] if names & STORED else []
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in SAID:
            yield from node.args


def has_words(node: ast.expr) -> bool:
    """Whether an expression is a text with several words, which no sentence has made."""
    parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
    return any(
        (isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value)
        or (isinstance(part, ast.JoinedStr) and any(" " in str(getattr(value, "value", "")) for value in part.values
                                                   if isinstance(value, ast.Constant)))
        for part in parts
    )  # fmt: skip


def test_the_sentences_are_defined_where_they_are_looked_for() -> None:
    known = {Path(str(module.__file__)) for module in MODULES} | {
        ROOT / "core" / name for name in ("stored_sentence.py", "history_sentences.py")
    }
    marks = ("StoredSentence(", "StoredPhrase(")
    assert {path for path in ROOT.rglob("*.py") if any(mark in path.read_text() for mark in marks)} == known
