"""The last occurrence that a calendar does not exclude, against a search one by one."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core import last_free as module
from scheduling.core.calendars import parse_calendar
from scheduling.core.cron import parse
from scheduling.core.last_free import last_free
from scheduling.core.nominal import NominalTimes
from tests.support import NOON, examples

ENTRIES = (
    "2026-03-10 09:30-12:30 stocktaking", "2026-03-07..2026-03-10 closed", "sat,sun", "22:00-06:00 night",
    "mon-fri 09:00-17:30 trading hours", "every 03-09", "2026-03-10 11:00-12:30 a", "2026-03-10 10:00-11:00 b",
)  # fmt: skip
EXPRESSIONS = ("0 * * * *", "*/20 * * * *", "0 9 * * *", "30 6 * * 1-5", "@every 50m")


@examples(200)
@given(
    st.sampled_from(EXPRESSIONS), st.sets(st.sampled_from(ENTRIES)), st.sampled_from(["UTC", "Europe/Madrid"]),
    st.integers(0, 6 * 24 * 60),
)  # fmt: skip
def test_it_is_the_last_one_that_is_free(expression: str, entries: set[str], tz: str, minutes: int) -> None:
    times, calendar = NominalTimes(parse(expression), tz), parse_calendar("\n".join(sorted(entries)), tz)
    after = NOON - timedelta(minutes=minutes)
    expected: datetime | None = None
    here = times.after(after)
    while here is not None and here <= NOON:
        expected = expected if calendar.blocked(here) is not None else here
        here = times.after(here)
    assert last_free(times, calendar, after, NOON) == expected


def test_the_search_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 3)
    calendar = parse_calendar("22:00-06:00 night", "UTC")
    times = NominalTimes(parse("0 5 * * *"), "UTC")
    assert last_free(times, calendar, NOON - timedelta(days=30), NOON) == datetime(2026, 3, 7, 5, tzinfo=NOON.tzinfo)
