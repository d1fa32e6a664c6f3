"""The state machine's table is whole, and its parts agree."""

from __future__ import annotations

from scheduling.core.lifecycle import CANCELLABLE, ENDED, MOVES, STARTABLE, State, may


def test_every_state_has_its_moves() -> None:
    assert set(MOVES) == set(State)


def test_what_has_ended_moves_no_more() -> None:
    assert all(not MOVES[state] for state in ENDED)


def test_what_may_start_or_be_cancelled_says_so() -> None:
    assert all(may(state, State.RUNNING) for state in STARTABLE)
    assert all(may(state, State.CANCELLED) for state in CANCELLABLE)


def test_the_failed_inbox_is_left_by_operators_only() -> None:
    assert MOVES[State.FAILED] == {State.CLAIMED, State.QUEUED, State.DISCARDED}
