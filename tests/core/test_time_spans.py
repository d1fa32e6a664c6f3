"""Tests of lengths of time as operators type them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.time_spans import TimeSpanError, parse_time_span, spell_time_span
from tests.support import examples


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), ("500ms", 500), ("1h 30m", 5_400_000),
        ("1h30m", 5_400_000), (" 5 Min ", 300_000), ("1.5h", 5_400_000), ("2d", 172_800_000), ("0s", 0),
    ],
)  # fmt: skip
def test_lengths_are_read(text: str, milliseconds: int) -> None:
    assert parse_time_span(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", " ", "300000", "5", "m", "5x", "-5m", "5m-", "1e9s", "5m" * 40, "5 m 3", "\u0663s"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(TimeSpanError):
        parse_time_span(text)


@given(st.integers(0, 10**12))
@examples(200)
def test_a_length_is_read_as_it_was_written(milliseconds: int) -> None:
    assert parse_time_span(spell_time_span(milliseconds)) == milliseconds


@pytest.mark.long
@given(st.text(max_size=60))
@examples(300)
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(TimeSpanError):
        assert parse_time_span(text) >= 0
