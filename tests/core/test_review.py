"""The tables of a review from sums of tallies, and the days that a review is about."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.review import (
    Day,
    HourSums,
    Job,
    Review,
    Totals,
    days_of,
    newly_failing,
    p95_bound,
    recovered,
    slowest,
    total,
)
from scheduling.core.review_range import MOST_DAYS, NoDate, Range, RangeError, TooLong, last_days, typed_range
from scheduling.core.skip_reasons import (
    CONFIRMED,
    HELD_EDITED,
    NO_PRODUCER,
    NOT_CAUGHT_UP,
    OVER_CAP,
    PAUSED_SERVICE,
    PERHAPS_EXCLUDED,
    RAN_BEFORE_RESTORE,
    SWITCHED_OFF,
    SkipReason,
    excluded,
    expired,
    held,
    kind_of,
    left_out,
    missed,
    missed_date,
    newer,
    not_needed,
    paused,
    predecessor_late,
    too_late,
)

BERLIN = ZoneInfo("Europe/Berlin")
TODAY = date(2026, 3, 30)
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
WEEK = Range(date(2026, 3, 24), TODAY, BERLIN)


def test_a_range_is_typed_as_two_dates_in_any_order() -> None:
    assert typed_range("", "", TODAY, BERLIN) == last_days(TODAY, BERLIN) == WEEK
    assert typed_range("2026-03-30", " 2026-03-24 ", TODAY, BERLIN) == WEEK
    assert typed_range("2026-03-24", "", TODAY, BERLIN) == WEEK
    assert typed_range("", "2026-03-30", date(2026, 5, 1), BERLIN) == WEEK
    assert WEEK.before == Range(date(2026, 3, 17), date(2026, 3, 23), BERLIN)
    assert typed_range("2026-01-01", "2026-04-02", TODAY, BERLIN).days[-1] == date(2026, 4, 2)


@pytest.mark.parametrize("text", ["today", "2026-02-30", "2026-3-9-1", "\x00", "0001-01-01", "9999-12-31", "2" * 99])
def test_a_text_that_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(NoDate):
        typed_range(text, "", TODAY, BERLIN)


def test_a_range_is_a_quarter_at_most() -> None:
    first = TODAY - timedelta(days=MOST_DAYS)
    with pytest.raises(TooLong):
        typed_range(first.isoformat(), TODAY.isoformat(), TODAY, BERLIN)


ZONES = ["UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe"]


@given(st.dates(date(1990, 1, 1), date(2037, 1, 1)), st.integers(0, 20), st.sampled_from(ZONES))
def test_ranges_beside_each_other_share_no_hour_and_lose_none(first: date, more: int, name: str) -> None:
    found = Range(first, first + timedelta(days=more), ZoneInfo(name))
    assert found.before.until == found.since < found.until
    assert (found.since.minute, found.until.minute) == (0, 0), "tallies have whole hours of UTC"
    assert [found.day_of(Range(day, day, found.info).since) for day in found.days] == found.days
    hours = [found.since + timedelta(hours=n) for n in range(int((found.until - found.since) / timedelta(hours=1)))]
    days = [found.day_of(hour) for hour in hours]
    assert days == sorted(days)
    assert set(days) == set(found.days)
    assert min(days.count(day) for day in found.days) >= 22


def hour(text: str, type_: str = "worker", left_out: int = 0, **numbers: int) -> HourSums:
    return HourSums(text, type_, Totals(**numbers), left_out)


def test_hours_become_days_of_the_zone_and_unreadable_ones_are_left_out() -> None:
    rows = [
        hour("2026-03-29 22:00:00", attempts=4, retries=2, failures=1, failed=3),  # the clocks have gone forward
        hour("2026-03-29 21:00:00+00", attempts=1),
        hour("2026-03-29 21:00:00.000000", "report", attempts=1),
        hour("2026-03-29 nonsense", attempts=100),
        hour("2026-03-24 00:00:00", left_out=2),
    ]
    days, left = days_of(rows, WEEK)
    assert [(row.day.day, row.type, row.totals.attempts) for row in days] == [
        (30, "worker", 4), (29, "report", 1), (29, "worker", 1),
    ]  # fmt: skip
    assert left == 3
    assert total(days) == Totals(attempts=6, retries=2, failures=1, failed=3)
    by_day = Review(WEEK, days=days).by_day
    assert [totals.attempts for _day, totals in by_day] == [0, 0, 0, 0, 0, 2, 4]
    assert Day(TODAY, "worker", days[0].totals) == days[0]


def test_retries_are_told_as_a_number_an_average_and_a_share() -> None:
    sums = Totals(attempts=10, retries=4)
    assert (sums.runs, round(sums.retries_per_run, 3), sums.retry_share) == (6, 0.667, 0.4)
    for odd in (Totals(), Totals(attempts=1, retries=5), Totals(retries=5)):
        assert odd.runs == 0 == odd.retries_per_run
        assert 0 <= odd.retry_share <= 1


def test_newly_failing_and_recovered_are_the_differences_of_both_ranges() -> None:
    now = [Job("worker", "a", 1, 3), Job("worker", "B", 2, 1)]
    before = [Job("worker", "b", 2, 5), Job("worker", "c", None, 1), Job("worker", "d", 4, 9)]
    assert newly_failing(now, before) == [now[0]]
    found = recovered(now, before, {("worker", "c", None): 7})
    assert [(job.target, job.attempts) for job in found] == [("c", 7), ("d", 0)]


def test_the_slowest_targets_have_an_average_and_a_bound_for_95_percent() -> None:
    rows = [("worker", "a", 0, 94, 47_000), ("worker", "a", 4, 6, 300_000), ("worker", "b", 10, 1, 30_000_000)]
    found = [(slow.target, round(slow.average, 2), slow.p95) for slow in slowest([*rows, ("worker", "c", 0, 0, 5)])]
    assert found == [("b", 30_000.0, None), ("a", 3.47, 60.0)]
    assert p95_bound([(0, 95), (4, 5)]) == 1.0
    assert p95_bound([(-7, 1)]) == 1.0
    assert p95_bound([(99, 1)]) is None


def test_each_sentence_about_a_skip_has_its_kind() -> None:
    utc, day = ZoneInfo("UTC"), timedelta(days=1)
    sentences = {
        SWITCHED_OFF: SkipReason.PAUSED,
        PAUSED_SERVICE: SkipReason.PAUSED,
        paused(NOON, NOON + day, 3, utc, "anna", "no producer was running"): SkipReason.PAUSED,
        left_out(7, service=True): SkipReason.OVERLAP,
        left_out(7, service=False): SkipReason.OVERLAP,
        newer(7): SkipReason.OVERLAP,
        expired(day, day, "in the queue main"): SkipReason.EXPIRED,
        not_needed(""): SkipReason.NOT_NEEDED,
        missed(NOON, NOON, 1, NO_PRODUCER, utc): SkipReason.NO_PRODUCER,
        missed(NOON, NOON + day, 9, too_late(day), utc): SkipReason.TOO_LATE,
        missed_date(NOON, day): SkipReason.TOO_LATE,
        missed(NOON, NOON, 1, RAN_BEFORE_RESTORE, utc): SkipReason.RESTORED,
        missed(NOON, NOON, 2, CONFIRMED, utc): SkipReason.CONFIRMED,
        missed(NOON, NOON, 2, NOT_CAUGHT_UP, utc): SkipReason.NOT_CAUGHT_UP,
        missed(NOON, NOON, 2, OVER_CAP, utc): SkipReason.OVER_CAP,
        missed(NOON, NOON, 2, PERHAPS_EXCLUDED, utc): SkipReason.NO_PRODUCER,
        excluded(NOON, NOON, 2, "Missed: no producer was running.", utc): SkipReason.EXCLUDED,
        held(NOON, NOON, 2, "", utc, HELD_EDITED): SkipReason.HELD,
        predecessor_late(NOON, "Load data", utc): SkipReason.PREDECESSOR,
        "": SkipReason.OTHER,
        "Missed the bus.": SkipReason.OTHER,
    }
    assert {text: kind_of(text) for text in sentences} == sentences
    assert set(sentences.values()) == set(SkipReason)
    assert issubclass(NoDate, RangeError)
