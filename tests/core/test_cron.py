"""The tests compare the instants of cron expressions with a table and with the simple implementation in `brute`.

A gap is the local time that a clock change skips. A fold is the local time that a clock change repeats.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.cron import (
    CronError,
    ZoneError,
    count_between,
    last_between,
    next_after,
    parse,
    upcoming,
)
from scheduling.core.days import first_day
from tests.core import brute
from tests.core.brute import APIA, LORD_HOWE, MADRID, NEW_YORK, SAO_PAULO, TEHRAN, ZONES, clock_changes, utc
from tests.support import examples

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def times(expression: str, tz: str, after: str, until: str) -> list[str]:
    """Return the instants in (after, until] that `next_after` finds, as texts like "08 07:30": day and UTC time."""
    cron, found, here, end = parse(expression), [], utc(after), utc(until)
    while (here := next_after(cron, tz, here)) <= end:
        found.append(f"{here:%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("expression", "tz", "after", "until", "expected"),
    [
        # A fixed schedule in a gap: one run, at the end of the gap.
        # New York 2026-03-08 02:00 -> 03:00 (07:00 UTC); Madrid 2026-03-29 02:00 -> 03:00 (01:00 UTC)
        ("30 2 * * *", NEW_YORK, "2026-03-07", "2026-03-10", ["07 07:30", "08 07:00", "09 06:30"]),
        ("30 2 * * *", MADRID, "2026-03-28", "2026-03-31", ["28 01:30", "29 01:00", "30 00:30"]),
        ("0,15,30 2 * * *", NEW_YORK, "2026-03-08", "2026-03-09", ["08 07:00"]),
        ("0 2,3 * * *", NEW_YORK, "2026-03-08", "2026-03-09", ["08 07:00"]),
        ("0 3 * * *", NEW_YORK, "2026-03-08", "2026-03-09", ["08 07:00"]),
        # A fixed schedule in a fold: one run, when the clock shows the time for the first time.
        # New York 2026-11-01 02:00 -> 01:00 (06:00 UTC); Madrid 2026-10-25 03:00 -> 02:00 (01:00 UTC)
        ("30 1 * * *", NEW_YORK, "2026-10-31", "2026-11-03", ["31 05:30", "01 05:30", "02 06:30"]),
        ("30 2 * * *", MADRID, "2026-10-24", "2026-10-27", ["24 00:30", "25 00:30", "26 01:30"]),
        (
            "0 0-23 * * *",
            NEW_YORK,
            "2026-11-01T03:30",
            "2026-11-01T08",
            ["01 04:00", "01 05:00", "01 07:00", "01 08:00"],
        ),
        # A real-time schedule in a gap: it follows real time and does not fire at a time that the clock skips.
        ("0 * * * *", NEW_YORK, "2026-03-08T05:30", "2026-03-08T08", ["08 06:00", "08 07:00", "08 08:00"]),
        ("*/30 * * * *", MADRID, "2026-03-29T00:15", "2026-03-29T01:45", ["29 00:30", "29 01:00", "29 01:30"]),
        ("* 2 * * *", NEW_YORK, "2026-03-08", "2026-03-09", []),
        ("*/15 2 * * *", NEW_YORK, "2026-03-08", "2026-03-09", []),
        # A real-time schedule in a fold: it fires at both instants of a repeated time.
        ("0 * * * *", NEW_YORK, "2026-11-01T04:30", "2026-11-01T08", ["01 05:00", "01 06:00", "01 07:00", "01 08:00"]),
        ("*/30 1 * * *", NEW_YORK, "2026-11-01", "2026-11-02", ["01 05:00", "01 05:30", "01 06:00", "01 06:30"]),
        ("0 */2 * * *", MADRID, "2026-10-24T23", "2026-10-25T04", ["25 00:00", "25 01:00", "25 03:00"]),
        # 02:00 is in the gap, so the schedule fires at 00:00 and 04:00, not at 03:00.
        ("0 */2 * * *", NEW_YORK, "2026-03-08T04", "2026-03-08T10", ["08 05:00", "08 08:00", "08 10:00"]),
        # Clock changes of half an hour. Lord Howe 2026-04-05 02:00 -> 01:30 (04-04 15:00 UTC);
        # 2026-10-04 02:00 -> 02:30 (10-03 15:30 UTC).
        (
            "*/20 * * * *",
            LORD_HOWE,
            "2026-04-04T14:15",
            "2026-04-04T15:55",
            ["04 14:20", "04 14:40", "04 15:10", "04 15:30", "04 15:50"],
        ),
        ("45 1 * * *", LORD_HOWE, "2026-04-03", "2026-04-06", ["03 14:45", "04 14:45", "05 15:15"]),
        ("15 2 * * *", LORD_HOWE, "2026-10-02", "2026-10-05", ["02 15:45", "03 15:30", "04 15:15"]),
        ("0 */2 * * *", LORD_HOWE, "2026-10-03T13", "2026-10-03T18", ["03 13:30", "03 17:00"]),
        # Clock changes at midnight.
        # Sao Paulo 2018-11-04 00:00 -> 01:00 (03:00 UTC), 2018-02-18 00:00 -> 23:00 (02:00 UTC)
        ("0 0 * * *", SAO_PAULO, "2018-11-03", "2018-11-06", ["03 03:00", "04 03:00", "05 02:00"]),
        ("30 23 * * *", SAO_PAULO, "2018-02-17", "2018-02-20", ["17 01:30", "18 01:30", "19 02:30"]),
        ("0 0 18 2 *", SAO_PAULO, "2018-02-17", "2018-02-20", ["18 03:00"]),
        ("30 * 4 11 *", SAO_PAULO, "2018-11-04T02", "2018-11-04T04:45", ["04 03:30", "04 04:30"]),
        # Tehran 2022-03-22 00:00 -> 01:00 (03-21 20:30 UTC), 2022-09-22 00:00 -> 09-21 23:00 (09-21 19:30 UTC)
        ("30 0 * * *", TEHRAN, "2022-03-20", "2022-03-23", ["20 21:00", "21 20:30", "22 20:00"]),
        ("30 23 * * *", TEHRAN, "2022-09-20T12", "2022-09-23", ["20 19:00", "21 19:00", "22 20:00"]),
        ("30 * * * *", TEHRAN, "2022-09-21T18:30", "2022-09-21T21:30", ["21 19:00", "21 20:00", "21 21:00"]),
        # A clock change of a whole day. Apia skipped 2011-12-30 (12-30 10:00 UTC)
        ("30 9 * * *", APIA, "2011-12-29", "2012-01-01", ["29 19:30", "30 10:00", "30 19:30", "31 19:30"]),
        ("0 12 30 12 *", APIA, "2011-12-01", "2012-12-01", ["30 10:00"]),
        ("0 */6 * * *", APIA, "2011-12-29T22", "2011-12-30T16", ["30 04:00", "30 10:00", "30 16:00"]),
        # A zone without clock changes.
        ("30 2 * * *", "UTC", "2026-03-28", "2026-03-31", ["28 02:30", "29 02:30", "30 02:30"]),
        ("0 * * * *", "UTC", "2026-10-25T00:30", "2026-10-25T03", ["25 01:00", "25 02:00", "25 03:00"]),
    ],
)
def test_instants_of_the_table(expression: str, tz: str, after: str, until: str, expected: list[str]) -> None:
    assert times(expression, tz, after, until) == expected
    assert count_between(parse(expression), tz, utc(after), utc(until)) == len(expected)
    last = last_between(parse(expression), tz, utc(after), utc(until))
    assert (f"{last:%d %H:%M}" if last else None) == (expected[-1] if expected else None)


@pytest.mark.parametrize(("day", "runs"), [("2026-03-08", 0), ("2026-11-01", 60), ("2026-11-02", 60)])
def test_minutes_of_a_skipped_hour_do_not_run(day: str, runs: int) -> None:
    start = utc(day) + 5 * HOUR

    assert count_between(parse("* 2 * * *"), NEW_YORK, start, start + 23 * HOUR) == runs


def test_minutes_of_a_repeated_hour_run_twice() -> None:
    start = utc("2026-11-01T04:30")

    assert count_between(parse("* 1 * * *"), NEW_YORK, start, start + 24 * HOUR) == 120
    # A fixed schedule with the same minutes runs once.
    assert count_between(parse("0-59 1 * * *"), NEW_YORK, start, start + 24 * HOUR) == 60


def test_next_is_strictly_later() -> None:
    cron, nine = parse("0 9 * * *"), utc("2026-01-01T09:00")

    assert next_after(cron, "UTC", nine - timedelta(microseconds=1)) == nine
    assert next_after(cron, "UTC", nine) == nine + timedelta(days=1)
    assert next_after(cron, "UTC", nine + 59 * SECOND) == nine + timedelta(days=1)


def test_instants_may_have_any_zone_and_results_are_in_utc() -> None:
    after = datetime.fromisoformat("2026-01-01T23:30:00-05:00")

    found = next_after(parse("0 0 * * *"), MADRID, after)

    assert found == utc("2026-01-02T23:00")
    assert found.tzinfo is UTC


def test_upcoming() -> None:
    cron, after = parse("0 9 * * 1"), utc("2026-01-01")

    assert upcoming(cron, "UTC", after, 2) == [utc("2026-01-05T09:00"), utc("2026-01-12T09:00")]
    assert upcoming(cron, "UTC", after, 0) == []


@pytest.mark.parametrize("function", [count_between, last_between])
@pytest.mark.parametrize("hours", [0, -1, -24 * 400])
def test_an_empty_span_holds_nothing(function: object, hours: int) -> None:
    after = utc("2026-01-01")

    assert not function(parse("* * * * *"), NEW_YORK, after, after + hours * HOUR)  # type: ignore[operator]


def test_naive_instants_are_refused() -> None:
    cron, naive, aware = parse("* * * * *"), datetime(2026, 1, 1), utc("2026-01-01")

    for call in (
        lambda: next_after(cron, "UTC", naive),
        lambda: upcoming(cron, "UTC", naive, 1),
        lambda: last_between(cron, "UTC", naive, aware),
        lambda: last_between(cron, "UTC", aware, naive),
        lambda: count_between(cron, "UTC", naive, aware),
        lambda: count_between(cron, "UTC", aware, naive),
    ):
        with pytest.raises(ValueError, match="needs a time zone"):
            call()


def test_unknown_zone_is_refused() -> None:
    with pytest.raises(ZoneError, match="Mars/Olympus"):
        next_after(parse("* * * * *"), "Mars/Olympus", utc("2026-01-01"))


def test_a_schedule_whose_times_are_always_skipped_is_an_error() -> None:
    # This expression fires from 02:00 to 02:59 on 8 March if the day is a Sunday. New York skips this hour on this day.
    cron, after = parse("* 2 8 3 */7"), utc("2026-01-01")
    first_day.cache_clear()

    with pytest.raises(CronError, match=r"'\* 2 8 3 \*/7' never fires again in America/New_York"):
        next_after(cron, NEW_YORK, after)

    assert last_between(cron, NEW_YORK, after, utc("2036-01-01")) is None
    assert count_between(cron, NEW_YORK, after, utc("2036-01-01")) == 0
    # The search ends after fifty years, so it looks at few dates.
    assert first_day.cache_info().misses < 1000
    # UTC does not skip the hour, so the schedule fires in UTC.
    assert next_after(cron, "UTC", after) == utc("2026-03-08T02:00")


def test_a_search_after_the_year_9999_is_an_error() -> None:
    end = utc("9999-12-31T23:59")

    for expression in ("* * * * *", "0 0 * * *", "0 0 1 1 *", "0 0 L * 1"):
        for tz in ("UTC", NEW_YORK, "Asia/Tokyo"):
            with pytest.raises(CronError, match="never fires again"):
                next_after(parse(expression), tz, end)


def test_five_years_of_every_minute() -> None:
    cron, after, until = parse("* * * * *"), utc("2021-01-01T00:00:30"), utc("2026-01-01T00:00:30")
    minutes = (until - after) // MINUTE

    # This real-time schedule runs once in each minute that passes, so clock changes do not change the number of runs.
    assert count_between(cron, "UTC", after, until) == minutes
    assert count_between(cron, NEW_YORK, after, until) == minutes
    assert count_between(cron, LORD_HOWE, after, until) == minutes
    # Each of the five folds repeats 60 minutes, and a fixed schedule does not run again in these minutes. A gap removes
    # no run, because no time passes while the clock jumps forward.
    assert count_between(parse("0-59 0-23 * * *"), NEW_YORK, after, until) == minutes - 5 * 60
    assert last_between(cron, NEW_YORK, after, until) == utc("2026-01-01T00:00")


def test_threads_do_not_disturb_each_other() -> None:
    # No cache holds the dates of these schedules, so croniter must find the dates. All threads ask for them at once.
    crons = [parse(expression) for expression in ("0 9 L * *", "30 2 29 2 *", "0 0 13 * 5", "15 4 * * 1#2")]
    starts = [utc("1980-01-01") + day * timedelta(days=37, hours=5) for day in range(60)]
    expected = [next_after(cron, MADRID, start) for start in starts for cron in crons]
    barrier = threading.Barrier(8)

    def ask(_: int) -> list[datetime]:
        barrier.wait()
        return [next_after(cron, MADRID, start) for start in starts for cron in crons]

    # The interpreter switches threads as often as possible.
    first_day.cache_clear()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(8)))
    finally:
        sys.setswitchinterval(interval)

    # Each thread finds the same instants as a single thread.
    assert answers == [expected] * 8


# The tests below compare the code with `brute`.


def check(expression: str, tz: str, after: datetime, until: datetime) -> None:
    expected = brute.fires(expression, tz, after, until)
    try:
        cron = parse(expression)
    except CronError:
        cron = None
    if cron is None:  # the expression names only dates that do not exist
        assert not expected
        return

    found, here = [], after
    while (here := next_after(cron, tz, here)) <= until:
        found.append(here)

    assert found == expected
    assert count_between(cron, tz, after, until) == len(expected)
    assert last_between(cron, tz, after, until) == (expected[-1] if expected else None)


@pytest.mark.long
@examples(800)
@given(
    brute.times | brute.expressions,
    st.integers(0, 10**6),
    st.timedeltas(-5 * HOUR, 3 * HOUR),
    st.timedeltas(timedelta(0), 8 * HOUR),
)
def test_around_clock_changes_the_results_equal_brute(
    expression: str, pick: int, start: timedelta, length: timedelta
) -> None:
    tz, change = clock_changes()[pick % len(clock_changes())]

    check(expression, tz, change + start, change + start + length)


@pytest.mark.long
@examples(200)
@given(
    brute.expressions,
    st.sampled_from(ZONES),
    st.datetimes(datetime(1975, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    st.timedeltas(timedelta(0), timedelta(days=2)),
)
def test_at_any_time_the_results_equal_brute(expression: str, tz: str, after: datetime, length: timedelta) -> None:
    check(expression, tz, after, after + length)


@pytest.mark.long
@examples(200)
@given(
    brute.expressions,
    st.sampled_from(ZONES),
    st.datetimes(datetime(2005, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    st.integers(1, 400),
)
def test_the_count_equals_the_number_of_instants(expression: str, tz: str, after: datetime, runs: int) -> None:
    try:
        instants = upcoming(parse(expression), tz, after, runs)
    except CronError:
        return  # the dates are so rare that the last run would be after the year 9999
    until = instants[-1]

    for end, count, last in ((until, runs, until), (until - SECOND, runs - 1, instants[-2] if runs > 1 else None)):
        assert count_between(parse(expression), tz, after, end) == count
        assert last_between(parse(expression), tz, after, end) == last
    assert all(earlier < later for earlier, later in pairwise([after, *instants]))


class TestFlawsOfCroniter:
    """Instants that croniter 7.0 finds wrongly if it is used without our code."""

    @pytest.mark.parametrize("minutes", ["*/20", "*/7", "*/25", "*/40"])
    def test_runs_in_a_half_hour_fold_are_not_lost(self, minutes: str) -> None:
        change = utc("2026-04-04T15:00")

        check(f"{minutes} * * * *", LORD_HOWE, change - 2 * HOUR, change + 2 * HOUR)

    def test_a_fixed_schedule_does_not_run_twice_in_a_fold(self) -> None:
        assert times("30 1 * * *", NEW_YORK, "2026-11-01", "2026-11-02") == ["01 05:30"]

    @pytest.mark.parametrize(
        ("expression", "expected"),
        [
            ("0 */2 * * *", ["08 08:00"]),
            ("*/15 2 * * *", []),
            ("* 2 * * *", []),
            # `0-23` does not begin with a star, so the schedule is fixed. The run in the gap comes at the gap's end.
            ("16 0-23 * * *", ["08 06:16", "08 07:00", "08 07:16", "08 08:16"]),
        ],
    )
    def test_a_gap_adds_no_run_and_loses_none(self, expression: str, expected: list[str]) -> None:
        assert times(expression, NEW_YORK, "2026-03-08T06", "2026-03-08T08:30") == expected

    def test_a_gap_does_not_repeat_or_shift_runs(self) -> None:
        # 02:30 is in the gap. Code that only adds the zone to the local time would run the schedule twice at 03:30.
        assert times("30 2,3 * * *", NEW_YORK, "2026-03-08T05", "2026-03-08T12") == ["08 07:00", "08 07:30"]

    def test_runs_go_on_during_a_fold(self) -> None:
        instants = upcoming(parse("*/5 * * * *"), NEW_YORK, utc("2026-11-01T04:00"), 60)

        assert {later - earlier for earlier, later in pairwise(instants)} == {5 * MINUTE}

    def test_a_search_from_inside_a_fold_does_not_go_back(self) -> None:
        # At 06:20 UTC, the clock shows 01:20 for the second time.
        after = utc("2026-11-01T06:20")

        assert next_after(parse("*/30 * * * *"), NEW_YORK, after) == utc("2026-11-01T06:30")
        assert next_after(parse("30 1 * * *"), NEW_YORK, after) == utc("2026-11-02T06:30")

    def test_a_run_at_the_start_of_the_span_does_not_count(self) -> None:
        cron, minute = parse("30 2 * * *"), utc("2026-01-01T02:30")

        assert count_between(cron, "UTC", minute, minute + 59 * SECOND) == 0
        assert last_between(cron, "UTC", minute, minute + 59 * SECOND) is None
