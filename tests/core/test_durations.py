"""Usual durations, slower than usual, and the end of an attempt."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.core.durations import Usual, attempt_end, p95, usual
from tests.support import NOON

LATER = NOON + timedelta(minutes=2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([120.0], Usual(120.0, 240.0, 1)),
        ([120.0] * 6 + [780.0], Usual(120.0, 240.0, 7)),  # one bad night is not usual
        ([120.0] * 19, Usual(120.0, 240.0, 19)),
        ([120.0] * 18 + [780.0, 780.0], Usual(120.0, 780.0, 20)),
    ],
)
def test_the_usual_duration(values: list[float], expected: Usual | None) -> None:
    assert usual(values) == expected


def test_the_95th_percentile_needs_twenty_runs() -> None:
    assert p95([1.0] * 19) is None
    assert p95([float(number) for number in range(1, 21)]) == 19.0


@pytest.mark.parametrize(
    ("median", "runs", "seconds", "times"),
    [
        (123.0, 30, 738.0, 6.0),
        (120.0, 30, 359.0, None),  # less than three times the median
        (0.004, 30, 0.9, None),  # many times the median, but less than a second longer
        (0.0, 30, 2.0, 2000.0),
        (120.0, 4, 780.0, None),  # too few runs
    ],
)
def test_slower_than_usual(median: float, runs: int, seconds: float, times: float | None) -> None:
    assert Usual(median, 2 * median, runs).times(seconds) == times


@pytest.mark.parametrize(
    ("state", "recorded", "expected"),
    [
        ("succeeded", None, LATER),
        ("discarded", NOON, NOON),
        ("discarded", None, None),
        ("cancelled", NOON, NOON),
        ("failed", NOON, NOON),
        ("failed", None, LATER),
    ],
)
def test_the_end_of_an_attempt(state: str, recorded: object, expected: object) -> None:
    assert attempt_end(state, LATER, recorded) == expected  # type: ignore[arg-type]
    assert attempt_end(state, None, recorded) is None  # type: ignore[arg-type]
