"""A limit allows so many runs at once and so many starts within any span, for each key apart."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.run_limit import UNUSABLE_KEY, Limit, limit_problem
from tests.support import examples

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
AT = NOW.timestamp()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "Limit needs at_once= or starts="),
        ({"at_once": 0}, "at_once is a whole number from 1 to 1,000,000, not 0"),
        ({"at_once": True}, "not True"),
        ({"at_once": 1.5}, "not 1.5"),
        ({"starts": 1_001}, "starts is a whole number from 1 to 1,000, not 1001"),
        ({"starts": 1, "per": 0}, "per is a number of seconds"),
        ({"starts": 1, "per": float("nan")}, "per is a number of seconds"),
        ({"at_once": 1, "key": 7}, "key is the name of a param or a function, not 7"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_its_name(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Limit(**values)


def test_an_option_of_another_type_is_named() -> None:
    assert (limit_problem(None), limit_problem(Limit(1))) == ("", "")
    assert limit_problem(3) == "limit is a Limit, not 3."


def raises(_params: Mapping[str, Any]) -> str:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("key", "params", "found"),
    [
        ("", {"region": "eu"}, ""),
        ("region", {"region": "eu"}, "eu"),
        ("region", {"region": 7}, "7"),
        ("region", {"region": ["a", 1]}, "['a', 1]"),
        ("region", {"region": "a\n b\x00"}, "a b\\x00"),
        ("region", {}, UNUSABLE_KEY),
        ("region", {"region": "x" * 201}, UNUSABLE_KEY),
        (lambda params: params["region"][:2], {"region": "eu-west"}, "eu"),
        (raises, {}, UNUSABLE_KEY),
    ],
)
def test_the_key_of_a_run(key: Any, params: dict[str, Any], found: str) -> None:
    assert Limit(at_once=1, key=key).key_of(params) == found


@pytest.mark.parametrize(
    ("rules", "taken", "started", "room"),
    [
        (Limit(at_once=2), 0, [], 2),
        (Limit(at_once=2), 2, [], 0),
        (Limit(at_once=2), 5, [], 0),
        (Limit(starts=3, per=10), 9, [AT - 11, AT - 9, AT - 1], 1),
        (Limit(starts=3, per=10), 0, [AT - 10], 3),
        (Limit(starts=3, per=10), 0, [AT + 1], 2),
        (Limit(starts=3, per=10), 0, [AT + 10], 3),
        (Limit(at_once=1, starts=3, per=10), 0, [AT - 1, AT], 1),
    ],
)
def test_room(rules: Limit, taken: int, started: list[float], room: int) -> None:
    assert rules.room(taken, started, NOW) == room


def test_the_next_start_is_when_the_oldest_one_leaves_the_span() -> None:
    rules = Limit(starts=2, per=10)
    assert rules.next_start([AT - 4, AT - 1], NOW) == NOW + timedelta(seconds=6)
    assert rules.next_start([AT - 1], NOW) is None
    assert Limit(at_once=1).next_start([AT], NOW) is None


def test_operators_only_lower_a_limit() -> None:
    rules = Limit(at_once=5, starts=10, key="region")
    assert rules.lowered(2, None) == Limit(at_once=2, starts=10, key="region")
    assert rules.lowered(9, 4) == Limit(at_once=5, starts=4, key="region")
    assert Limit(at_once=5).lowered(None, 3) == Limit(at_once=5, starts=3)
    assert Limit(at_once=5).lowered(0, -1) == Limit(at_once=5)
    assert Limit(at_once=5).lowered("1", True) == Limit(at_once=5)
    assert Limit(starts=5).lowered(10**9, None) == Limit(at_once=1_000_000, starts=5)
    assert Limit(at_once=5).lowered(None, 10**9) == Limit(at_once=5, starts=1000)


def test_a_run_that_waits_says_for_what() -> None:
    rules = Limit(at_once=1, key="region")
    subject = "the worker 'push'"
    text = "It waits for a place: 1 of 1 runs of the worker 'push' with the key 'eu' run."
    assert rules.sentence(subject, "eu", 1, [], NOW) == text
    assert "older runs of the worker 'push'" in Limit(at_once=1).sentence(subject, "", 0, [], NOW)
    said = Limit(starts=1, per=10).sentence(subject, "", 0, [AT], NOW)
    assert said.startswith("It waits for its turn: 1 runs of the worker 'push' have started within 10 s.")
    assert said.endswith("at 12:00:10 UTC at the earliest.")


@given(
    st.integers(1, 5), st.floats(0.5, 20), st.lists(st.tuples(st.floats(0, 15), st.floats(0, 0.9)), max_size=40)
)  # fmt: skip
@examples(200)
def test_no_span_has_more_starts_than_allowed(starts: int, per: float, gaps: list[tuple[float, float]]) -> None:
    """Processes decide one after the other, each with the time that it took a little before."""
    rules, at, noted, started = Limit(starts=starts, per=per), AT, list[float](), list[float]()
    for gap, late in gaps:
        at += gap
        now = datetime.fromtimestamp(at - late * per, UTC)
        if room := rules.room(0, noted, now):
            noted = rules.noted(noted, room, now)
            started += [now.timestamp()] * room
    started.sort()
    for first, last in zip(started, started[starts:], strict=False):
        assert last - first >= per - 1e-5  # instants have microseconds
