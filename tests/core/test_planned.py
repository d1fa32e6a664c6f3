"""Schedules with rules of their own are planned as a slow model says, and as their preview says."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.core.assigned import Assigned
from scheduling.core.calendars import parse_calendar
from scheduling.core.cron import parse
from scheduling.core.expected import Expected, Fate, expected
from scheduling.core.nominal import NominalTimes
from scheduling.core.occurrences import Plan
from scheduling.core.planned import MOST_LOOKED_AT, first_plan, plan, skip_all
from scheduling.core.settled import settle
from scheduling.core.skip_reasons import SkipReason, is_on_purpose, kind_of
from scheduling.core.spread_offset import SpreadOffset
from scheduling.core.timing import Blocked, Exclusions, MissedRuns, OnExcluded, Timing
from tests.core.brute import utc
from tests.core.slow_timing import DAY, MINUTE, SECOND, Rules, Window, events, outcome, rules

EXAMPLES = int(os.environ.get("TEST_TIMING_EXAMPLES", "25"))
BEGINS = [utc("2026-03-07T20:00"), utc("2026-10-31T18:00"), utc("2026-04-04T06:00"), utc("2026-07-01T00:00")]
"""Before clock changes of the zones, and far from any."""


def assigned(rules: Rules) -> Assigned:
    timing = Timing(
        within=SECOND * rules.within, spread=SECOND * rules.spread, each=rules.each,
        missed_runs=MissedRuns(rules.missed), cap=rules.cap,
        on_excluded=OnExcluded.HOLD if rules.hold else OnExcluded.SKIP,
        excluded=rules.blocked if rules.windows else None,
    )  # fmt: skip
    times = NominalTimes(parse(rules.expression), rules.tz, since=rules.since, until=rules.until)
    return Assigned(times, timing, rules.number)


def skipped(found: Plan) -> Counter[str]:
    counts: Counter[str] = Counter()
    for missed in found.all_missed:
        counts[kind_of(missed.reason).value] += missed.count
    return counts


class TestAgainstTheModel:
    @settings(max_examples=EXAMPLES)
    @given(st.data(), st.sampled_from(BEGINS), st.integers(0, 3 * 86_400))
    def test_a_plan_is_what_the_model_says(self, data: st.DataObject, begin: datetime, seconds: int) -> None:
        own = data.draw(rules(begin))
        now = begin + SECOND * seconds
        end = max([now, *(window.until for window in own.windows)])
        nominal = own.nominal(begin, end + 4 * DAY)
        if len(nominal) < 4:
            return
        known = list(events(own, nominal))
        if known and data.draw(st.booleans()):  # an edge: just before, at or after something happens
            place = data.draw(st.integers(0, min(len(known) - 1, 400)))
            now = min(known[place].at + SECOND * data.draw(st.integers(-1, 1)), end)
        told = outcome(own, nominal, now)
        found = plan(assigned(own), nominal[0], now)
        undecided = found.next_nominal_at or found.next_run_at
        assert found.next_run_at == told.wakes_at
        are_many = bool(own.windows) and sum(one <= now for one in nominal) > MOST_LOOKED_AT
        if are_many and own.hold and undecided is not None and told.undecided is not None:
            assert undecided >= told.undecided  # those in the middle are told together, also if a calendar holds them
        else:
            assert undecided == told.undecided
        assert len(found.runs) + skipped(found).total() == sum(one < (undecided or end) for one in nominal)  # each once
        keys = [due.key for due in found.runs] + [missed.key for missed in found.all_missed]
        assert len(set(keys)) == len(keys)
        if are_many:
            return
        assert [(due.instant, due.assigned) for due in found.runs] == told.runs
        assert skipped(found) == told.skipped

    @settings(max_examples=EXAMPLES)
    @given(st.data(), st.sampled_from(BEGINS))
    def test_the_preview_is_what_a_clock_then_makes(self, data: st.DataObject, begin: datetime) -> None:
        own = assigned(replace(data.draw(rules(begin)), within=86_400 * 30))
        told = list(first(expected(own, own.times.after(begin)), 12))
        wanted = [
            (one.first if one.fate is Fate.RUNS else one.last, one.starts_at)
            for one in told
            if one.starts_at is not None
        ]
        made, dropped = list[tuple[datetime | None, datetime | None]](), 0
        at, nominal = first_plan(own, begin)
        while at is not None and len(made) < len(wanted):
            found = plan(own, nominal or at, at)
            made += [(due.instant, due.assigned) for due in found.runs]
            dropped += skipped(found).total()
            assert found.next_run_at is None or found.next_run_at > at
            at, nominal = found.next_run_at, found.next_nominal_at
        assert made == wanted
        starts = [start for _nominal, start in made if start is not None]
        assert all(before < after for before, after in pairwise(starts))
        assert dropped == sum(one.count - (one.starts_at is not None) for one in told)


def first(found: Iterator[Expected], count: int) -> Iterator[Expected]:
    starts = 0
    for one in found:
        yield one
        starts += one.starts_at is not None
        if starts == count:
            return


DAILY = Rules("0 9 * * *", "UTC", 7)
NINE = utc("2026-07-01T09:00")


class TestSpread:
    def test_the_offset_is_the_same_everywhere(self) -> None:
        """The numbers stand here, so that no change of the computation goes unseen: starts would move."""
        offsets = [SpreadOffset(number, timedelta(minutes=30)).stable for number in (1, 2, 3)]
        assert [int(offset.total_seconds()) for offset in offsets] == [1450, 592, 586]

    def test_many_schedules_are_spread_over_the_window(self) -> None:
        window = timedelta(minutes=30)
        minutes = Counter(int(SpreadOffset(number, window).stable / MINUTE) for number in range(3_000))
        assert set(minutes) == set(range(30))
        assert max(minutes.values()) < 160

    def test_each_offset_ends_before_the_next_occurrence(self) -> None:
        own = assigned(Rules("* * * * *", "UTC", 7, spread=86_400, each=True))
        nominal = [NINE + MINUTE * number for number in range(300)]
        assert all(one <= own.at(one) < one + MINUTE for one in nominal)
        assert len({own.at(one) - one for one in nominal}) > 40


class TestCalendars:
    def test_a_calendar_that_excludes_everything_ends_the_search(self) -> None:
        own = assigned(DAILY)
        own = replace(own, timing=replace(own.timing, excluded=lambda _instant: Always()))
        for mode in OnExcluded:
            held = replace(own, timing=replace(own.timing, on_excluded=mode))
            assert first_plan(held, NINE)[0] is None
            assert plan(held, NINE, NINE + DAY).run is None

    def test_one_exclusion_after_the_other_without_an_end_is_searched_on_later(self) -> None:
        own = assigned(replace(DAILY, expression="0 9,18 * * *"))
        own = replace(own, timing=replace(own.timing, excluded=lambda at: Window(at, at + MINUTE, "each")))
        at, nominal = first_plan(own, NINE)
        assert at is not None
        assert nominal is not None
        assert at > nominal + 365 * DAY
        found = plan(own, nominal, at)
        assert found.run is None
        assert found.next_run_at is not None
        assert found.next_run_at > at

    @pytest.mark.parametrize("expression", ["0 9 * * *", "0 9 * * 1", "0 9 1 * *", "0 9 1 1 *"])
    def test_a_window_around_each_occurrence_excludes_everything(self, expression: str) -> None:
        own = assigned(replace(DAILY, expression=expression))
        window = parse_calendar("08:00-10:00 maintenance", "UTC").blocked
        assert first_plan(replace(own, timing=replace(own.timing, excluded=window)), NINE)[0] is None

    def test_an_occurrence_that_is_free_after_years_is_found(self) -> None:
        """2,000 days have a line each."""
        lines = "\n".join(f"{(NINE + DAY * number).date()} 08:00-10:00" for number in range(2_000))
        for expression, entries, free in (
            ("0 9 * * *", lines, NINE + DAY * 2_000),
            ("0 9 29 2 *", "mon-thu,sat,sun", utc("2036-02-29T09:00")),
            ("0 9 29 2 *", "mon-thu,sat,sun\n2036-02-29", utc("2064-02-29T09:00")),
        ):
            own = assigned(replace(DAILY, expression=expression))
            calendar = parse_calendar(entries, "UTC")
            assert first_plan(replace(own, timing=replace(own.timing, excluded=calendar.blocked)), NINE)[0] == free

    def test_an_end_that_is_not_later_is_passed(self) -> None:
        own = assigned(DAILY)
        own = replace(own, timing=replace(own.timing, excluded=lambda at: Window(at, at - DAY, "odd")))
        assert plan(own, NINE, NINE + DAY).all_missed[0].count == 2

    def test_what_is_excluded_last_is_put_on_record(self) -> None:
        window = Window(NINE + DAY, NINE + 9 * DAY, "holiday")
        own = assigned(replace(DAILY, until=NINE + 2 * DAY, windows=[window]))
        found = plan(own, NINE, NINE)
        assert (found.next_nominal_at, found.next_run_at) == (NINE + DAY, NINE + 2 * DAY)
        last = plan(own, NINE + DAY, NINE + 2 * DAY)
        assert [missed.reason for missed in last.all_missed] == [
            "Excluded 2 occurrences from 2026-07-02 09:00 to 2026-07-03 09:00 UTC: holiday."
        ]
        assert last.next_run_at is None
        assert is_on_purpose(last.all_missed[0].reason)

    def test_what_is_held_runs_once_when_the_hold_ends(self) -> None:
        window = Window(NINE - MINUTE, NINE + MINUTE * 90, "freeze")
        own = assigned(Rules("0,20 * * * *", "UTC", 7, hold=True, windows=[window]))
        assert plan(own, NINE, NINE).next_run_at == window.until
        found = plan(own, NINE, window.until)
        assert [(due.instant, due.assigned) for due in found.runs] == [(NINE + MINUTE * 80, window.until)]
        assert [missed.reason for missed in found.all_missed] == [
            "Held 3 occurrences from 2026-07-01 09:00 to 2026-07-01 10:00 UTC: freeze; "
            "only the one at 2026-07-01 10:20 UTC runs when it is over."
        ]

    def test_what_is_held_gives_way_to_an_occurrence_at_the_very_end(self) -> None:
        window = Window(NINE - MINUTE, NINE + MINUTE * 60, "freeze")
        own = assigned(Rules("0,20 * * * *", "UTC", 7, hold=True, missed="all", windows=[window]))
        found = plan(own, NINE, window.until)
        assert [(due.instant, due.assigned) for due in found.runs] == [(window.until, window.until)]
        assert [missed.count for missed in found.all_missed] == [2]
        assert "only the one at 2026-07-01 10:00 UTC runs" in found.all_missed[0].reason

    def test_exclusions_without_a_gap_are_one_hold(self) -> None:
        middle, end = NINE + MINUTE * 30, NINE + MINUTE * 50
        windows = [Window(NINE, middle, "freeze"), Window(middle, end, "holiday")]
        own = assigned(Rules("0,20,40 * * * *", "UTC", 7, hold=True, windows=windows))
        assert plan(own, NINE, middle).next_run_at == end
        found = plan(own, NINE, end)
        assert [(due.instant, due.assigned) for due in found.runs] == [(NINE + MINUTE * 40, end)]
        assert [(missed.count, ": freeze;" in missed.reason) for missed in found.all_missed] == [(2, True)]

    def test_the_cap_is_exact(self) -> None:
        own = assigned(Rules("*/5 9-17 * * *", "Europe/Madrid", 7, missed="all", cap=777, within=10**7))
        found = plan(own, NINE, NINE + 60 * DAY)
        newest = own.times.last(NINE, NINE + 60 * DAY)
        assert len(found.runs) == 777
        assert found.runs[-1].instant == newest

    def test_one_that_has_its_own_offset_waits_for_it(self) -> None:
        own = assigned(Rules("0 * * * *", "UTC", 7, spread=3600, each=True))
        assert own.at(NINE) > NINE + SECOND
        assert plan(own, NINE, own.at(NINE) - SECOND).runs == ()
        assert plan(own, NINE - timedelta(hours=1), own.at(NINE) - SECOND).runs[0].instant == NINE - timedelta(hours=1)
        assert plan(own, NINE, own.at(NINE)).runs[0].instant == NINE


class Always:
    until = None
    reason = "always"


class TestEdits:
    def test_an_edit_keeps_the_latest_that_waits_and_ends_a_hold(self) -> None:
        own = assigned(Rules("*/10 * * * *", "UTC", 7, spread=86_400))
        found = settle(own, NINE, NINE + MINUTE * 35, times_change=True)
        assert found.kept == NINE + MINUTE * 30
        assert [missed.count for missed in found.skips] == [3]
        held = assigned(Rules("*/10 * * * *", "UTC", 7, hold=True, windows=[Window(NINE, NINE + DAY, "freeze")]))
        settled = settle(held, NINE, NINE + MINUTE * 35, times_change=False)
        assert settled.kept is None
        assert [(missed.count, kind_of(missed.reason).value) for missed in settled.skips] == [(4, "held")]

    @pytest.mark.parametrize("missed", ["latest", "all"])
    def test_the_edit_is_the_reason_only_of_those_that_would_have_run(self, missed: str) -> None:
        own = assigned(Rules("*/10 * * * *", "UTC", 7, missed=missed))
        (skipped,) = settle(own, NINE, NINE + MINUTE * 35, times_change=True).skips
        assert (skipped.count, "was edited" in skipped.reason) == (3, missed == "all")

    @pytest.mark.parametrize("hold", [False, True])
    def test_what_is_excluded_after_the_one_that_is_kept_is_decided_by_the_next_plan_of_the_same_times(
        self, hold: bool
    ) -> None:
        windows = [Window(NINE + MINUTE * 5, NINE + MINUTE * 15, "a"), Window(NINE + MINUTE * 25, NINE + DAY, "b")]
        own = assigned(Rules("*/10 * * * *", "UTC", 7, hold=hold, windows=windows))
        skipped = {NINE: 1, NINE + MINUTE * 10: 1}
        for times_change, decided in ((False, skipped), (True, skipped | {NINE + MINUTE * 30: 2})):
            found = settle(own, NINE, NINE + MINUTE * 45, times_change=times_change)
            assert found.kept == NINE + MINUTE * 20
            assert {missed.first: missed.count for missed in found.skips} == decided

    def test_skip_all_leaves_what_starts_later(self) -> None:
        own = assigned(Rules("0 * * * *", "UTC", 7, spread=3600))
        start = own.at(NINE)
        assert skip_all(own, NINE, start - SECOND, "why").missed is None
        found = skip_all(own, NINE, start + 3 * timedelta(hours=1), "why")
        assert found.missed is not None
        assert (found.missed.count, found.run) == (4, None)
        assert found.next_nominal_at == NINE + timedelta(hours=4)


def test_years_without_a_producer_take_few_steps() -> None:
    """The number of questions to the calendar is bounded. (Times are measured by the benchmarks.)"""
    asked = list[datetime]()

    def weekend(at: datetime) -> Window | None:
        asked.append(at)
        if at.weekday() < 5:
            return None
        end = (at + (7 - at.weekday()) * DAY).replace(hour=0, minute=0)
        return Window(at, end, "weekend")

    own = assigned(Rules("* * * * *", "Europe/Madrid", 7))
    own = replace(own, timing=replace(own.timing, excluded=weekend))
    found = plan(own, utc("2024-07-01T00:00"), utc("2026-07-01T12:00"))
    assert len(asked) < 5 * MOST_LOOKED_AT
    assert [due.instant for due in found.runs] == [utc("2026-07-01T12:00")]
    assert skipped(found).total() + 1 == (utc("2026-07-01T12:00") - utc("2024-07-01T00:00")) // MINUTE + 1


NIGHT = parse_calendar("22:00-08:00 night", "UTC").blocked
WEEKEND = parse_calendar("sat,sun weekend", "UTC").blocked
EVEN = parse_calendar(
    "\n".join(f"{n // 60:02}:{n % 60:02}-{n // 60:02}:{n % 60 + 1:02}" for n in range(0, 1440, 2)), "UTC"
)


@pytest.mark.parametrize(
    ("excluded", "since", "now", "runs"),
    [
        (NIGHT, "2026-03-13T10:00", "2026-03-14T07:30", "2026-03-13T21:59"),
        (WEEKEND, "2026-03-13T10:00", "2026-03-14T20:00", "2026-03-13T23:59"),
        (WEEKEND, "2026-03-13T10:00", "2026-03-15T20:00", "2026-03-13T23:59"),
        (WEEKEND, "2025-03-13T10:00", "2026-03-15T20:00", "2026-03-13T23:59"),
    ],
)
@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize(("missed", "cap"), [("latest", 1), ("all", 3), ("all", 1_000)])
def test_the_latest_that_is_free_runs_also_if_the_newest_are_all_excluded(
    excluded: Exclusions, since: str, now: str, runs: str, hold: bool, missed: str, cap: int
) -> None:
    own = assigned(Rules("* * * * *", "UTC", 7, missed=missed, cap=cap, within=3 * 86_400, hold=hold))
    asked = list[datetime]()

    def counted(at: datetime) -> Blocked | None:
        asked.append(at)
        return excluded(at)

    own = replace(own, timing=replace(own.timing, excluded=counted))
    found = plan(own, utc(since), utc(now))
    assert [due.instant for due in found.runs][-3:] == [utc(runs) - MINUTE * n for n in range(min(cap, 3) - 1, -1, -1)]
    oldest = max(utc(since), utc(now) - 3 * DAY)
    young = [oldest + MINUTE * number for number in range((utc(now) - oldest) // MINUTE + 1)]
    assert len(found.runs) == min(cap, sum(excluded(one) is None for one in young))
    assert len(asked) < 10 * MOST_LOOKED_AT
    end = found.next_nominal_at or found.next_run_at
    assert end is not None
    assert len(found.runs) + skipped(found).total() == (end - utc(since)) // MINUTE  # each once
    assert (end == utc(runs) + MINUTE) == hold


def test_if_all_are_excluded_one_by_one_no_catch_up_window_is_blamed() -> None:
    own = assigned(Rules("*/2 * * * *", "UTC", 7, within=10**7))
    own = replace(own, timing=replace(own.timing, excluded=EVEN.blocked))
    found = plan(own, NINE, NINE + 60 * DAY)
    assert found.run is None
    (missed,) = [one for one in found.all_missed if kind_of(one.reason) is not SkipReason.EXCLUDED]
    assert missed.reason.endswith(": no producer was running, or a calendar excluded them.")


@pytest.mark.parametrize("name", ["TZ"])
def test_the_zone_of_the_machine_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = SpreadOffset(5, timedelta(hours=1), each=True).at(NINE, DAY)
    monkeypatch.setenv(name, "Asia/Tokyo")
    time.tzset()
    try:
        assert SpreadOffset(5, timedelta(hours=1), each=True).at(NINE.astimezone(UTC), DAY) == before
    finally:
        monkeypatch.undo()
        time.tzset()
