"""The tests check when a replay goes on after its canary, and how many executions it sends at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.core.lifecycle import State
from scheduling.core.replay import LATE, Release, Stop, Wait, due, verdict
from tests.support import NOON

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.mark.parametrize("state", [*State, None])
def test_a_failed_canary_stops_the_replay_in_every_state(state: State | None) -> None:
    assert verdict(state, "ValueError: no total") == Stop("The canary failed: ValueError: no total")


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("claimed", Wait), ("queued", Wait), ("running", Wait), ("retrying", Wait), ("succeeded", Release),
        ("failed", Stop), ("cancelled", Stop), ("discarded", Stop), ("skipped", Stop), (None, Stop),
    ],
)  # fmt: skip
def test_each_state_has_its_verdict(state: str | None, kind: type) -> None:
    assert isinstance(verdict(state, None), kind)


@pytest.mark.parametrize(
    ("step", "left", "late", "count", "following"),
    [
        (timedelta(0), 500, timedelta(0), 100, timedelta(0)),
        (timedelta(0), 7, timedelta(hours=3), 7, timedelta(0)),
        (MINUTE, 10, -SECOND, 0, timedelta(0)),
        (MINUTE, 10, timedelta(0), 1, MINUTE),
        (SECOND, 100, timedelta(seconds=9.5), 10, timedelta(seconds=10)),
        (SECOND, 4, timedelta(seconds=9.5), 4, timedelta(seconds=4)),
    ],
)
def test_number_of_due_executions(
    step: timedelta, left: int, late: timedelta, count: int, following: timedelta
) -> None:
    assert due(NOON, step, left, NOON + late, 100) == (count, NOON + following)


def test_after_an_outage_the_late_executions_are_not_sent_at_once() -> None:
    now = NOON + timedelta(hours=2)
    assert due(NOON, SECOND, 1_000, now, 100) == (1, now + SECOND)
    assert due(NOON, SECOND, 1_000, NOON + LATE, 100) == (61, NOON + 61 * SECOND)
