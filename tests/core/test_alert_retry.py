"""When a message of alerts is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scheduling.core.alert_retry import LONGEST_SECONDS, MOST_WAIT_SECONDS, next_try

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tries", "retry_after", "seconds"),
    [
        (1, None, 10), (2, None, 20), (100, None, LONGEST_SECONDS),
        (1, 5.0, 10), (1, 120.0, 120), (1, 3_600.0, 3_600), (100, 3_600.0, 3_600), (1, 1e9, 3_600),
    ],
)  # fmt: skip
def test_it_waits_as_long_as_the_server_says_up_to_an_hour(tries: int, retry_after: float | None, seconds: int) -> None:
    assert next_try(tries, NOON, NOON, retry_after) == NOON + timedelta(seconds=seconds)
    assert seconds <= MOST_WAIT_SECONDS
