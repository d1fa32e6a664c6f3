"""No expression costs more than its length: whatever somebody types or plain SQL stores, the work has a bound.

The dearest that were found: dates that never come, which need fifty years of months to be gone through.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.core import days
from scheduling.core.cron import count_between, next_after
from scheduling.core.describe import describe
from scheduling.core.dialect import MAX_LENGTH, parse
from tests.core import brute
from tests.steps import steps

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)

SEARCH = 60_000
"""Steps to look for a date that never comes; ten times less is usual."""
CHARACTER = 60
WORDS = 6_000

CRAFTED = [
    ",".join(["0-59/1"] * 35) + " * * * *",
    "0," * 120 + "0 * * * *",
    "0-" * 100 + " * * * *",
    "9" * 250 + " * * * *",
    "*" * 255,
    "(" * 255,
    "0 " * 127,
    "*/59 */23 */31 */12 */7",
    "0 0 31 2 *",
    "0 0 31 2,4,6,9,11 *",
    "0 0 29 2 5#5",
    "0 0 29 2 6",
    "0 0 30 2 1",
    "0 0 * * 1#5,2#5,3#5,4#5,5#5",
]

typed = st.text(st.sampled_from("0123456789*/-,#L \tabcdefmnorstuy()\u0660"), max_size=MAX_LENGTH)


def next_of(expression: str) -> datetime:
    """As a producer plans it."""
    return next_after(parse(expression), "Europe/Madrid", NOW)


def bounded(expression: str) -> None:
    """Each of what a page or a producer asks of an expression, with nothing remembered of it."""
    parse.cache_clear()
    days.first_day.cache_clear()
    days._engine.cache_clear()
    for call in (parse, next_of):
        assert steps(call, expression) <= SEARCH + CHARACTER * len(expression), (call.__name__, expression)
    assert steps(describe, expression) <= WORDS + CHARACTER * len(expression), expression


@pytest.mark.parametrize("expression", CRAFTED)
def test_crafted_ones(expression: str) -> None:
    bounded(expression)


@settings(max_examples=300, deadline=None)
@given(typed | st.lists(typed, min_size=5, max_size=5).map(" ".join) | brute.expressions)
def test_any(expression: str) -> None:
    bounded(expression)


@pytest.mark.parametrize("character", ["0", ",", "*", "(", " ", "0,", "\u0660"])
def test_a_megabyte_is_not_even_read(character: str) -> None:
    for call in (parse, next_of, describe):
        assert steps(call, character * 1_000_000) <= 100


def test_a_count_over_years_is_no_walk() -> None:
    until = datetime(2036, 3, 10, 12, tzinfo=UTC)
    assert steps(count_between, parse("* * * * *"), "Europe/Madrid", NOW, until) <= 10 * SEARCH  # of five million runs
