"""The functions for cron expressions need a limited number of steps, even for a hostile expression.

Any text can come from a user or from plain SQL. The limit grows only with the length of the expression. A step is one
function call (`tests.steps`).
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core import days
from scheduling.core.cron import count_between, next_after, parse
from scheduling.core.describe import describe
from scheduling.core.dialect import MAX_LENGTH
from tests.core import brute
from tests.core.crafted import CRAFTED
from tests.steps import steps
from tests.support import examples

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)

SEARCH = 60_000
"""The maximum number of steps of a search for the next instant. A usual search needs a tenth of this number.

A search for a date that never comes needs the most steps, because it looks at all months of fifty years.
"""

CHARACTER = 60
"""The additional steps for each character of the expression."""

WORDS = 6_000
"""The maximum number of steps of a description."""

typed = st.text(st.sampled_from("0123456789*/-,#L \tabcdefmnorstuy()\u0660"), max_size=MAX_LENGTH)


def next_of(expression: str) -> datetime:
    """Return the first instant after NOW at which the expression fires."""
    return next_after(parse(expression), "Europe/Madrid", NOW)


def check_steps(expression: str) -> None:
    """Check the number of steps of the functions that pages and producers call. The caches are empty at the start."""
    parse.cache_clear()
    days.first_day.cache_clear()
    days._engine.cache_clear()
    for call in (parse, next_of):
        assert steps(call, expression) <= SEARCH + CHARACTER * len(expression), (call.__name__, expression)
    assert steps(describe, expression) <= WORDS + CHARACTER * len(expression), expression


@pytest.mark.parametrize("expression", CRAFTED)
def test_crafted_expressions(expression: str) -> None:
    check_steps(expression)


@examples(300)
@given(typed | st.lists(typed, min_size=5, max_size=5).map(" ".join) | brute.expressions)
def test_any_expression(expression: str) -> None:
    check_steps(expression)


@pytest.mark.parametrize("character", ["0", ",", "*", "(", " ", "0,", "\u0660"])
def test_a_text_of_a_megabyte_is_refused_at_once(character: str) -> None:
    for call in (parse, next_of, describe):
        assert steps(call, character * 1_000_000) <= 100


def test_counting_runs_does_not_visit_each_run() -> None:
    until = datetime(2036, 3, 10, 12, tzinfo=UTC)
    assert (
        steps(count_between, parse("* * * * *"), "Europe/Madrid", NOW, until) <= 10 * SEARCH
    )  # ten years have 5 million runs
