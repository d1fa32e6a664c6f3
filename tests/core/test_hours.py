"""Tests of the counts for each hour. The slower `count_between` says what is right."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.cron import ZoneError, count_between, parse
from scheduling.core.hours import counts_per_hour, hours_from
from tests.support import NOON, examples

TICK = timedelta(microseconds=1)
ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia")
EXPRESSIONS = (
    "* * * * *", "*/7 * * * *", "0 3 * * *", "15,45 8-17 * * 1-5", "0 0 1 * *", "30 2 * * 0", "0 0 29 2 *",
    "@every 10s", "@every 90m from 2026-03-28T00:10Z", "@every 2d at 02:30", "@every 2w on sat,sun at 23:45",
)  # fmt: skip


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=st.just(UTC)),
)
@examples(200)
def test_each_hour_has_the_occurrences_that_fall_due_in_it(expression: str, tz: str, now: datetime) -> None:
    cron, edges = parse(expression), hours_from(now)
    wanted = [count_between(cron, tz, start - TICK, end - TICK) for start, end in pairwise(edges)]
    assert counts_per_hour(cron, tz, edges) == wanted


def test_the_first_hour_begins_now() -> None:
    now = NOON + timedelta(minutes=20)
    edges = hours_from(now)
    assert len(edges) == 26
    assert edges[:2] == [now, NOON + timedelta(hours=1)]
    assert edges[-2:] == [NOON + timedelta(hours=24), now + timedelta(hours=24)]
    assert hours_from(NOON) == [NOON + timedelta(hours=number) for number in range(25)]


def test_an_occurrence_on_the_edge_belongs_to_the_later_hour() -> None:
    counts = counts_per_hour(parse("0 13 * * *"), "UTC", hours_from(NOON))
    assert counts[:3] == [0, 1, 0]


def test_an_unknown_zone() -> None:
    with pytest.raises(ZoneError):
        counts_per_hour(parse("* * * * *"), "Mars/Olympus", hours_from(NOON))
