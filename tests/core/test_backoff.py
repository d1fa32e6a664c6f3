"""The delays of a retry policy follow a formula, a list or a function. What cannot be used is named."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from scheduling.core.retry import RetryPolicy, delays


def fibonacci(number: int) -> float:
    return [1, 1, 2, 3, 5, 8, 13, 21][min(number, 8) - 1]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"backoff": "constant"}, [30, 30, 30]),
        ({"backoff": "linear"}, [30, 60, 90]),
        ({"backoff": "linear", "max_delay_ms": 70_000}, [30, 60, 70]),
        ({"backoff": "linear", "max_retries": 19, "delay_ms": 3_600_000}, [3600] * 19),
        ({"backoff": "exponential"}, [30, 60, 120]),
        ({"backoff": [5, 5, 10, 15], "max_retries": 6}, [5, 5, 10, 15, 15, 15]),
        ({"backoff": (1.5, timedelta(minutes=2))}, [1.5, 120, 120]),
        ({"backoff": [600, 5], "max_delay_ms": 600_000}, [600, 5, 5]),
        ({"backoff": fibonacci, "max_retries": 6}, [1, 1, 2, 3, 5, 8]),
        ({"backoff": lambda number: timedelta(seconds=number)}, [1, 2, 3]),
    ],
)
def test_delays_follow_the_backoff(columns: dict[str, Any], expected: list[float]) -> None:
    policy = RetryPolicy(**columns)
    assert policy.problem == ""
    assert delays(policy) == [round(seconds * 1000) for seconds in expected]
    assert delays(replace(policy, jitter=True)) == delays(policy)


def test_a_function_is_called_once_for_each_possible_retry() -> None:
    called: list[int] = []

    def slowly(number: int) -> float:
        called.append(number)
        return 2

    policy = RetryPolicy(max_retries=1, backoff=slowly)
    assert delays(replace(policy, max_retries=19)) == [2000] * 19
    assert called == [*range(1, 20)]


class Unspeakable:
    """Its text cannot be shown."""

    def __repr__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize(
    ("backoff", "words"),
    [
        (lambda number: 6 / (4 - number), "raises ZeroDivisionError for retry 4"),
        (lambda number: [][number], "raises IndexError for retry 1"),
        (lambda number: exit(number), "raises SystemExit for retry 1"),
        (lambda number: -1, "of retry 1 must be a number of seconds from 1 to 3600, not -1"),
        (lambda number: 2**number, "of retry 12 must be a number of seconds from 1 to 3600, not 4096"),
        (lambda number: math.nan, "not nan"),
        (lambda number: math.inf, "not inf"),
        (lambda number: 10**5000, "not a int"),
        (lambda number: "5", "not '5'"),
        (lambda number: True, "not True"),
        (lambda number: None, "not None"),
        (lambda number: Unspeakable(), "not a Unspeakable"),
        (lambda: 5, "raises TypeError for retry 1"),
        ([], "must have 1 to 19 delays, not 0"),
        ([5] * 20, "must have 1 to 19 delays, not 20"),
        ([5, 0], "of retry 2 must be"),
        ([timedelta(days=1)], "of retry 1 must be"),
        ("fibonacci", "'fibonacci' is none of constant, linear, exponential"),
        (5, "must be a name, a list of seconds or a function, not 5"),
        (Unspeakable(), "not a Unspeakable"),
    ],
)
def test_what_cannot_be_used_is_named_and_the_delays_are_exponential(backoff: Any, words: str) -> None:
    policy = RetryPolicy(backoff=backoff)
    assert words in policy.problem
    assert policy.problem.startswith("The backoff ")
    assert policy.problem.endswith(".")
    assert delays(policy) == [30_000, 60_000, 120_000]
