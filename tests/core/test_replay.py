"""The canary's outcome decides whether a replay goes on. A limit decides how fast the replay sends the others."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.core.lifecycle import State
from scheduling.core.replay import LATE, Release, Stop, Wait, due, verdict
from tests.support import NOON

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.mark.parametrize("state", [*State, None])
def test_a_failure_for_good_stops_whatever_came_after_it(state: State | None) -> None:
    assert verdict(state, "ValueError: no total") == Stop("The canary failed: ValueError: no total")


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("claimed", Wait), ("queued", Wait), ("running", Wait), ("retrying", Wait), ("succeeded", Release),
        ("failed", Stop), ("cancelled", Stop), ("discarded", Stop), (None, Stop),
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
def test_so_many_are_due(step: timedelta, left: int, late: timedelta, count: int, following: timedelta) -> None:
    assert due(NOON, step, left, NOON + late, 100) == (count, NOON + following)


def test_an_outage_is_not_made_up_for_in_one_burst() -> None:
    now = NOON + timedelta(hours=2)
    assert due(NOON, SECOND, 1_000, now, 100) == (1, now + SECOND)
    assert due(NOON, SECOND, 1_000, NOON + LATE, 100) == (61, NOON + 61 * SECOND)
