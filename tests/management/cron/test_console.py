"""The console writes no control character, and asks on a terminal only."""

from __future__ import annotations

import io

import pytest

from scheduling.management.cron import console as consoles
from scheduling.management.cron.console import Console
from scheduling.management.cron.table import Cell
from scheduling.management.cron.verbs import VERBS
from tests.management.cron.calls import Terminal, cron


def test_no_text_reaches_the_terminal_as_it_is() -> None:
    out, err = Terminal(), Terminal()
    console = Console(out, err, {"no_color": True})
    console.say("a\x1b[2J\nforged", "bad")
    console.note("b\x9b2J\nforged")
    console.facts([("name\x1b", Cell("c\u202e\nd", "bad")), ("empty", None)])
    console.table(["head\x07"], [["e\x00\tf"], [None]])
    assert len(out.getvalue().splitlines()) == 5
    console.document("two\x1b\nlines\n")
    written = out.getvalue() + err.getvalue()
    assert not set(written) & set("\x00\x07\x1b\x9b\u202e\t")
    assert len(written.splitlines()) == 8


def test_without_a_verb_the_verbs_are_printed() -> None:
    ended = cron()
    assert (ended.code, ended.out) == (2, "")
    assert [name for name in VERBS if f"    {name} " not in ended.err] == []


def test_a_question_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Terminal("YES\nno\n")
    monkeypatch.setattr(consoles.sys, "stdin", answers)  # type: ignore[attr-defined]
    out, err = io.StringIO(), Terminal()
    assert not Console(out, out, {}).confirm("Sure?")
    console = Console(out, err, {})
    assert [console.confirm("Sure\x1b?") for _number in range(3)] == [True, False, False]
    assert "\x1b" not in err.getvalue()
