"""The tests check the table MOVES, which lists the allowed changes of state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduling.core.lifecycle import ENDED, MOVES, OPEN_STATES, WAITING, State, check_move


def test_every_state_has_its_moves() -> None:
    assert set(MOVES) == set(State)


def test_an_ended_execution_does_not_move() -> None:
    assert all(not MOVES[state] for state in ENDED)


def test_forbidden_moves_are_errors() -> None:
    check_move(WAITING, State.RUNNING)
    check_move(OPEN_STATES, State.CANCELLED)
    for origins, to in [(ENDED, State.RUNNING), ({State.FAILED}, State.RUNNING), (WAITING, State.SUCCEEDED)]:
        with pytest.raises(ValueError, match=f"never moves from [a-z]+ to {to}"):
            check_move(origins, to)


def test_a_failed_execution_moves_only_by_an_operators_action() -> None:
    assert MOVES[State.FAILED] == {State.CLAIMED, State.QUEUED, State.DISCARDED}


def test_waiting_states_are_listed_once() -> None:
    """Only lifecycle.py lists the three states in which an execution waits."""
    root = Path(__file__).parents[2]
    sources = [path for app in ("scheduling", "reports", "cronsite") for path in (root / app).rglob("*.py")]
    three_states = re.compile(
        r"[({\[](?=[^(){}\[\]]*State\.CLAIMED)(?=[^(){}\[\]]*State\.QUEUED)(?=[^(){}\[\]]*State\.RETRYING)"
    )
    assert [path.name for path in sources if three_states.search(path.read_text())] == ["lifecycle.py"]
