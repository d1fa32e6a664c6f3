"""The rules of retention: what waits or runs is never removed, whatever a policy says."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.lifecycle import ENDED, State
from scheduling.core.retention import (
    KEEP_ALL,
    LARGEST,
    SMALLEST,
    Facts,
    RetentionInvalid,
    RetentionPolicy,
    Rule,
    next_batch,
    rule_for,
)
from tests.support import NOON, examples

DAY = timedelta(days=1)
STRICT = RetentionPolicy(1, 1, 1, 1, 1)


def facts(state: str, age: timedelta) -> Facts:
    return Facts(state, NOON - age, NOON - age, NOON - age)


@pytest.mark.parametrize(
    ("state", "policy", "age", "rule"),
    [
        ("succeeded", RetentionPolicy(), 31, Rule.SUCCESS),
        ("succeeded", RetentionPolicy(), 29, None),
        ("succeeded", RetentionPolicy(success_days=5), 6, Rule.SUCCESS),
        ("skipped", RetentionPolicy(success_days=5), 6, None),
        ("cancelled", RetentionPolicy(), 31, Rule.ENDED),
        ("discarded", RetentionPolicy(), 31, Rule.ENDED),
        ("failed", RetentionPolicy(), 4000, None),
        ("failed", RetentionPolicy(failed_days=5), 6, Rule.FAILED),
        ("failed", RetentionPolicy(failed_days=5), 4, None),
        ("succeeded", RetentionPolicy(output_days=3), 4, Rule.OUTPUT),
        ("failed", RetentionPolicy(output_days=3), 4, None),
        ("succeeded", RetentionPolicy(None, None), 40_000, None),
    ],
)
def test_ages(state: str, policy: RetentionPolicy, age: int, rule: Rule | None) -> None:
    assert rule_for(facts(state, DAY * age), policy, NOON, DAY) is rule


def test_a_count_removes_what_has_ended_and_no_failure() -> None:
    policy = RetentionPolicy(count=1)
    found = {state: rule_for(facts(state, 2 * DAY), policy, NOON, DAY, enough=True) for state in State}
    assert {state for state, rule in found.items() if rule is Rule.COUNT} == set(ENDED)
    assert {rule for state, rule in found.items() if state not in ENDED} == {None}


times = st.one_of(st.none(), st.integers(-4000, 4000).map(lambda days: NOON - DAY * days))


@given(st.sampled_from([*State, "nonsense", ""]), times, times, times, st.integers(0, 3000), st.booleans())
@examples(400)
def test_what_waits_or_is_young_is_kept_by_every_policy(
    state: str, finished: datetime | None, claimed: datetime | None, due: datetime | None, window: int, enough: bool
) -> None:
    rule = rule_for(Facts(state, finished, claimed, due), STRICT, NOON, DAY * window, enough)
    if rule is not None:
        assert state in {*ENDED, State.FAILED}
        for instant in (finished, claimed, due):
            assert instant is not None
            assert instant <= NOON - DAY * window
        assert rule is not Rule.OUTPUT or state != State.FAILED


def test_a_clock_that_is_set_back_removes_nothing() -> None:
    row = facts("succeeded", 40 * DAY)
    assert rule_for(row, STRICT, NOON - 50 * DAY, DAY) is None


@pytest.mark.parametrize("value", [0, -1, 32_768, 2**70, "7", "", 1.5, True, b"1"])
@pytest.mark.parametrize("name", ["success_days", "failed_days", "output_days", "count"])
def test_an_own_value_out_of_bounds_is_refused(name: str, value: object) -> None:
    with pytest.raises(RetentionInvalid) as caught:
        RetentionPolicy().with_own({name: value})
    assert caught.value.field == name
    assert "whole number from 1 to 32767" in str(caught.value)


def test_own_values_replace_those_of_the_settings() -> None:
    base = RetentionPolicy(30, 30, None, None, 100)
    assert base.with_own({"success_days": 5, "count": None}) == RetentionPolicy(5, 30, None, None, 100)
    assert base.with_own({"count": None}) is base
    assert base.shortest_days == 30
    assert KEEP_ALL.shortest_days is None


@given(st.integers(SMALLEST, LARGEST), st.floats(0, 1e6))
@examples(200)
def test_a_slow_batch_is_followed_by_a_smaller_one(size: int, seconds: float) -> None:
    following = next_batch(size, seconds)
    assert SMALLEST <= following <= min(LARGEST, 1.5 * size)
    if seconds > 0.1 and size > SMALLEST:
        assert following < size
