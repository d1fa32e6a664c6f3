"""The tests check the delays, the limits and the decisions of the retry policy."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from pathlib import Path

import pytest

from scheduling.core.outcome import Cancelled, Crashed, Failed, Interrupted, RetryableError, Succeeded, TimedOut
from scheduling.core.retry import (
    BOUNDS,
    MAX_RETRIES,
    GiveUp,
    Retry,
    RetryPolicy,
    RetryPolicyInvalid,
    decide,
    delays,
    spelled,
)  # fmt: skip

FAILED = Failed("ValueError", "no")


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (RetryPolicy(), [30_000, 60_000, 120_000]),
        (RetryPolicy(max_retries=5, delay_ms=10_000, multiplier=1.5), [10_000, 15_000, 22_500, 33_750, 50_625]),
        (RetryPolicy(max_retries=2, delay_ms=60_000, multiplier=3.0), [60_000, 180_000]),
        (RetryPolicy(max_retries=3, multiplier=1.0), [30_000, 30_000, 30_000]),
        (RetryPolicy(max_retries=4, max_delay_ms=100_000), [30_000, 60_000, 100_000, 100_000]),
        (RetryPolicy(max_retries=0), []),
        (RetryPolicy(max_retries=19, delay_ms=3_600_000, multiplier=10.0), [3_600_000] * 19),
    ],
)
def test_delays_follow_the_formula(policy: RetryPolicy, expected: list[int]) -> None:
    assert delays(policy) == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_retries", -1),
        ("max_retries", 20),
        ("delay_ms", 999),
        ("delay_ms", 3_600_001),
        ("multiplier", 0.99),
        ("multiplier", 10.01),
        ("multiplier", math.nan),
        ("multiplier", math.inf),
        ("max_delay_ms", 29_999),
        ("max_delay_ms", 3_600_001),
    ],
)
def test_values_out_of_bounds_are_refused_with_an_error_code(field: str, value: float) -> None:
    with pytest.raises(RetryPolicyInvalid) as caught:
        RetryPolicy(**{field: value})  # type: ignore[arg-type]
    assert caught.value.code == "SCHEDULE_RETRY_POLICY_INVALID"
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("retries", "outcome", "expected"),
    [
        (0, FAILED, Retry(1, 30_000)),
        (2, FAILED, Retry(3, 120_000)),
        (3, FAILED, GiveUp("All 3 retries have been used.")),
        (0, Failed("X", "", retryable=False), GiveUp("The error says that a retry would not help.")),
        (0, Failed("X", "", retry_after_ms=1_500), Retry(1, 1_500)),
        (0, Failed("X", "", retry_after_ms=10**12), Retry(1, 3_600_000)),
        (3, Failed("X", "", retry_after_ms=1_500), GiveUp("All 3 retries have been used.")),
        (0, TimedOut(5), Retry(1, 30_000)),
        (1, Crashed(signal=9), Retry(2, 60_000)),
        (1, Crashed(lost=True), Retry(2, 0)),
        (3, Crashed(lost=True), GiveUp("All 3 retries have been used.")),
    ],
)
def test_decisions(retries: int, outcome: Failed | TimedOut | Crashed, expected: Retry | GiveUp) -> None:
    assert decide(RetryPolicy(), retries, outcome) == expected


def test_jitter_takes_between_half_and_all_of_the_delay() -> None:
    policy = RetryPolicy(jitter=True)
    drawn = [decide(policy, 0, FAILED, lambda value=value: value) for value in (0.0, 0.5, 1.0)]
    assert drawn == [Retry(1, 15_000), Retry(1, 22_500), Retry(1, 30_000)]


@pytest.mark.parametrize("outcome", [Succeeded(), Cancelled(), Interrupted()])
def test_only_failures_are_decided(outcome: Succeeded) -> None:
    with pytest.raises(ValueError, match="is not a failure"):
        decide(RetryPolicy(), 0, outcome)


def test_the_maximum_of_retries_is_in_one_file() -> None:
    root = Path(__file__).parents[2]
    sources = [path for app in ("scheduling", "reports", "cronsite") for path in (root / app).rglob("*.py")]
    named = re.compile(
        rf"^(?!.*retry_share).*retr.*\b({MAX_RETRIES[1]}|{MAX_RETRIES[1] + 1})\b", re.IGNORECASE | re.MULTILINE
    )
    found = [path.name for path in sources if path.parent.name != "migrations" and named.search(path.read_text())]
    assert found == ["retry.py"]
    for name, (low, high) in BOUNDS.items():
        said = f"must be from {spelled(name, low)} to {spelled(name, high)}, not {spelled(name, high + 1)}"
        with pytest.raises(RetryPolicyInvalid, match=said):
            RetryPolicy(**{name: high + 1})  # type: ignore[arg-type]


def test_retry_after_is_seconds_or_a_timedelta() -> None:
    assert RetryableError(retry_after=timedelta(minutes=1, milliseconds=500)).retry_after == 60.5
    assert RetryableError(retry_after=3).retry_after == 3
    assert RetryableError().retry_after is None
    for wrong in ("90", True, [90]):
        with pytest.raises(TypeError, match="a number of seconds or a timedelta, not"):
            RetryableError(retry_after=wrong)  # type: ignore[arg-type]
