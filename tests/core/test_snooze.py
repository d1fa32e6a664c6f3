"""A handler that is not ready puts its run off, for a bounded time and a bounded number of times."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.core.outcome import Failed, Snoozed
from scheduling.core.retry import RetryPolicy, decide
from scheduling.core.snooze import LONGEST, MOST_SNOOZES, SHORTEST, Snooze, allowed, bounded_wait

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("snooze", "seconds"),
    [
        (Snooze(90), 90),
        (Snooze(timedelta(minutes=2), reason="no file"), 120),
        (Snooze(until=LATER), 300),
        (Snooze(0), 0),
    ],
)
def test_a_snooze_has_a_length_or_an_end(snooze: Snooze, seconds: float) -> None:
    assert snooze.wait(NOON) == seconds
    assert str(snooze) in ("no file", "The handler is not ready yet.")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, TypeError),
        ({"seconds": 5, "until": LATER}, TypeError),
        ({"seconds": "5"}, TypeError),
        ({"seconds": True}, TypeError),
        ({"seconds": math.nan}, ValueError),
        ({"until": "noon"}, TypeError),
        ({"until": datetime(2026, 3, 10)}, ValueError),
    ],
)
def test_what_is_no_time_is_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Snooze(**arguments)


@pytest.mark.parametrize("seconds", [-5, 0, math.nan, -math.inf, None, "5", True, [], {}])
def test_the_shortest_wait_is_a_second(seconds: object) -> None:
    assert bounded_wait(seconds) == SHORTEST


@pytest.mark.parametrize("seconds", [1e300, math.inf, 10**400, 86_401])
def test_the_longest_wait_is_a_day(seconds: object) -> None:
    assert bounded_wait(seconds) == LONGEST
    assert bounded_wait(1.5) == timedelta(seconds=1.5)


def test_an_endless_snooze_is_a_failure_without_a_retry() -> None:
    outcome = Snoozed("no file", SHORTEST)
    assert allowed(outcome, MOST_SNOOZES - 1) is outcome
    assert allowed(outcome, "text that plain SQL wrote") is outcome
    failed = allowed(outcome, MOST_SNOOZES)
    assert isinstance(failed, Failed)
    assert failed.message == "It has snoozed 1,000 times. The last reason: no file"
    assert not failed.retryable
    with pytest.raises(ValueError, match="is not a failure"):
        decide(RetryPolicy(), 0, outcome)
