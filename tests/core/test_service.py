"""The delays between the restarts of a service."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.core.retry import Retry, RetryPolicy
from scheduling.core.service import restart

POLICY = RetryPolicy(max_retries=0, delay_ms=30_000, multiplier=2.0, max_delay_ms=600_000)
SHORT = timedelta(minutes=1)


def test_the_delays_grow_up_to_the_longest_one_whatever_the_number_of_retries() -> None:
    found = [restart(POLICY, restarts, SHORT) for restarts in range(8)]
    assert [retry.delay_ms for retry in found] == [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000, 600_000]
    assert [retry.number for retry in found] == list(range(1, 9))


@pytest.mark.parametrize(("lasted", "number"), [(timedelta(minutes=59, seconds=59), 6), (timedelta(hours=1), 1)])
def test_after_an_hour_without_an_end_the_next_delay_is_the_first_one(lasted: timedelta, number: int) -> None:
    assert restart(POLICY, 5, lasted).number == number


def test_a_service_that_ends_a_million_times_is_decided_at_once() -> None:
    constant = RetryPolicy(max_retries=0, delay_ms=1_000, multiplier=1.0)
    assert restart(constant, 1_000_000, SHORT) == Retry(1_000_001, 1_000)
    slow = RetryPolicy(max_retries=0, delay_ms=1_000, multiplier=1.0001, max_delay_ms=3_600_000)
    assert restart(slow, 1_000_000, SHORT).delay_ms == 3_600_000


def test_jitter_shortens_a_delay_by_half_at_most() -> None:
    policy = RetryPolicy(delay_ms=30_000, jitter=True)
    assert restart(policy, 0, SHORT, lambda: 0.0).delay_ms == 15_000
