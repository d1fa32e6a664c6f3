"""The sentences of pages are plain: sentences and words that puzzled operators do not come back."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("cronsite", "reports", "scheduling", "templates")
SUFFIXES = {".html", ".js", ".py", ".txt"}

REPLACED = [
    # dashboard and findings
    "again and again", "Their last 3 runs", "mend it", "until somebody", "Nothing will fall due", "a time to come",
    "that want one", "stopped without saying so", "lost contact, without",
    # confirmations
    "their retries at zero", "everything that matches the filter", "starts all of them", "stands for its own target",
    "many at once", "type how many they are", "It may be left out", "the next person will ask", "take me back",
    "What waits or runs goes on", "What was missed while it was off", "stays missed", "Its own times stay",
    # form of a schedule
    "is laid over", "What is left empty", "What is empty is inherited", "integer, from", "are shown once there is",
    "is shown once there is", "a job at fixed hours", "Draws each wait", "Half take", "95 of 100 take",
    # executions
    "; its lease ends", "set to no retries", "From due to end", "a few seconds, then it is killed",
    "has others by now", "It is over", "is on its way: execution", "are on their way",
    # inbox and lists
    "Nothing waits here", "An id, or a part of", "somebody was faster", "Left over: ", "as one request has only",
    "The latest of them", "others alike", "All but an id is looked for",
    # one word for one thing
    "Overdue schedules", "An overdue run", "(no code)", "does not know the code", "occurrences left out",
    "from an attempt that did not finish", "Code of",
    "failed with this error in 24 h", "each day that matches,",
    # riddles
    "Of several targets", "The first ones", "In the search of", "all that match", "runs at its times again",
    "will not run until it is resumed", "Enter a name first", "permanent failures of the last days", "past or future",
    "next attempt after a wait of %(time)s in", "retries are used.",
    # one word for pause and resume
    "switched off", "switched on", "Switch selected", "Switch schedules",
]  # fmt: skip
"""Parts of sentences that pages no longer show. They are also searched with a capital first letter."""


def texts(path: Path) -> str:
    """What a file may show: the strings of Python code without docstrings, the rest of a file without comments."""
    text = path.read_text()
    if path.suffix != ".py":
        return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/|//[^\n]*|\{#.*?#\}", "", text, flags=re.DOTALL))
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return "\n".join(str(node.value) for node in strings if id(node) not in docstrings)


@cache
def sources() -> dict[str, str]:
    """The texts of each file. A test reads them, because each process of pytest collects all tests."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return {str(path.relative_to(ROOT)): texts(path) for path in files if "migrations" not in path.parts}


@pytest.mark.parametrize("words", REPLACED)
def test_a_sentence_that_was_replaced_does_not_come_back(words: str) -> None:
    assert len(sources()) > 300
    assert [path for path, text in sources().items() if words in text or words.capitalize() in text] == []


def test_no_sentence_has_a_subject_that_is_not_named() -> None:
    vague = re.compile(r"\b(whoever|somebody|nobody)\b", re.IGNORECASE)
    files = [
        path
        for folder in (*FOLDERS, "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {*SUFFIXES, ".md"}
    ]
    files += [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    assert len(files) > 400
    assert [str(path) for path in files if vague.search(path.read_text())] == []


def test_no_test_module_imports_from_another_one() -> None:
    modules = sorted((ROOT / "tests").rglob("*.py"))
    found = re.compile(
        r"^\s*(from|import) tests[\w.]*\.test_\w+|^\s*from tests[\w.]* import .*\btest_\w+", re.MULTILINE
    )
    assert len(modules) > 200
    assert [str(path) for path in modules if found.search(path.read_text())] == []
