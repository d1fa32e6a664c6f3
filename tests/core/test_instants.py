"""All instants of a range are those that a slow model finds, near clock changes and far from them."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.core.cron import parse
from scheduling.core.instants import instants_between
from tests.core import brute, every
from tests.hostile.fuzz import amount

BEGIN = brute.utc("2026-03-27T10:00")


@settings(max_examples=amount(20_000, 40))
@given(brute.expressions, st.data(), st.integers(-3_000, 200), st.integers(1, 6_000))
def test_the_instants_around_a_clock_change(expression: str, data: st.DataObject, before: int, minutes: int) -> None:
    tz, change = data.draw(st.sampled_from(brute.clock_changes()))
    after = change + timedelta(minutes=before, seconds=data.draw(st.sampled_from([-1, 0, 0, 31])))
    until = after + timedelta(minutes=minutes)
    wanted = brute.fires(expression, tz, after, until)
    assert list(instants_between(parse(expression), tz, after, until)) == wanted


@settings(max_examples=amount(5_000, 20))
@given(every.days(BEGIN) | every.real(BEGIN, timedelta(days=3)), st.sampled_from(brute.ZONES), st.integers(1, 8_000))
def test_the_instants_of_an_interval(interval: every.Days | every.Real, tz: str, minutes: int) -> None:
    until = BEGIN + timedelta(minutes=minutes)
    assert list(instants_between(parse(interval.expression), tz, BEGIN, until)) == interval.fires(tz, BEGIN, until)


def test_no_instant_lies_beyond_the_calendar() -> None:
    last = datetime.max.replace(tzinfo=BEGIN.tzinfo)
    daily = parse("0 12 * * *")
    assert len(list(instants_between(daily, "Asia/Tokyo", last - timedelta(days=3), last))) == 3
    assert list(instants_between(daily, "UTC", BEGIN, BEGIN)) == []
