"""The table of the execution's states and moves is complete and has no contradictions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduling.core.lifecycle import CANCELLABLE, ENDED, MOVES, WAITING, State, check_move


def test_every_state_has_its_moves() -> None:
    assert set(MOVES) == set(State)


def test_what_has_ended_moves_no_more() -> None:
    assert all(not MOVES[state] for state in ENDED)


def test_what_may_start_or_be_cancelled_says_so() -> None:
    check_move(WAITING, State.RUNNING)
    check_move(CANCELLABLE, State.CANCELLED)
    for origins, to in [(ENDED, State.RUNNING), ({State.FAILED}, State.RUNNING), (WAITING, State.SUCCEEDED)]:
        with pytest.raises(ValueError, match=f"never moves from [a-z]+ to {to}"):
            check_move(origins, to)


def test_the_failed_inbox_is_left_by_operators_only() -> None:
    assert MOVES[State.FAILED] == {State.CLAIMED, State.QUEUED, State.DISCARDED}


def test_waiting_states_are_listed_once() -> None:
    """Only lifecycle.py has a set or tuple of the three states in which an execution waits."""
    root = Path(__file__).parents[2]
    sources = [path for app in ("scheduling", "reports", "cronsite") for path in (root / app).rglob("*.py")]
    trio = re.compile(
        r"[({\[](?=[^(){}\[\]]*State\.CLAIMED)(?=[^(){}\[\]]*State\.QUEUED)(?=[^(){}\[\]]*State\.RETRYING)"
    )
    assert [path.name for path in sources if trio.search(path.read_text())] == ["lifecycle.py"]
