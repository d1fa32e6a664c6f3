"""Passes share one spread, whatever the client says about its beginning and its total."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scheduling.core.spread import Spread

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SPAN = 10 * MINUTE


def test_a_first_pass_begins_now_and_a_further_one_goes_on() -> None:
    long_ago = NOW - timedelta(days=1)
    first = Spread.going_on(NOW - 5 * MINUTE, SPAN, 10, 10, NOW)
    assert [first.at(place, NOW) for place in (0, 3, 9)] == [NOW, NOW + 3 * MINUTE, NOW + 9 * MINUTE]
    assert first.step == MINUTE
    later = NOW + MINUTE
    further = Spread.going_on(NOW, SPAN, 10, 6, later)
    assert [further.at(place, later) for place in (0, 4, 9)] == [later, NOW + 4 * MINUTE, NOW + 9 * MINUTE]
    over = Spread.going_on(long_ago, SPAN, 10, 6, NOW)
    assert over.at(4, NOW) == NOW + 4 * MINUTE


def test_no_instant_and_no_total_breaks_it() -> None:
    for began in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), NOW):
        for total, left in ((0, 0), (0, 5), (5, 5), (2**63 - 1, 1), (2**63 - 1, 0)):
            spread = Spread.going_on(began, timedelta(days=1), total, left, NOW)
            assert NOW <= spread.at(spread.total - left, NOW) <= NOW + timedelta(days=1)
            assert spread.step >= timedelta(0)
    assert Spread.going_on(NOW, SPAN, 3, 5, NOW).step == SPAN / 5  # more than were counted
