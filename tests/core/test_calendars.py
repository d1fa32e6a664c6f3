"""Calendars: the forms of entries, the sentences about wrong ones, and a comparison with `brute_calendar`."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.calendar_days import Days
from scheduling.core.calendar_entries import (
    LONGEST_TEXT,
    MOST_ENTRIES,
    CalendarError,
    parse_entries,
    wrong_lines,
)
from scheduling.core.calendar_spans import flatten
from scheduling.core.calendars import Blocked, parse_calendar
from scheduling.core.cron import next_after, parse
from scheduling.core.excluded_runs import Freeze, excluded_runs
from tests.core import brute_calendar
from tests.core.brute_calendar import utc
from tests.support import examples

MADRID, MINUTE, DAY = "Europe/Madrid", timedelta(minutes=1), timedelta(days=1)


def until(entries: str, instant: str, tz: str = MADRID) -> str:
    """Until when an instant is excluded, in UTC; "never", or "" if it is not."""
    blocked = parse_calendar(entries, tz).blocked(utc(instant))
    return "" if blocked is None else "never" if blocked.until is None else f"{blocked.until:%Y-%m-%dT%H:%M}"


@pytest.mark.parametrize(
    ("entries", "instant", "end"),
    [
        ("2026-12-25", "2026-12-24T22:59", ""),
        ("2026-12-25", "2026-12-24T23:00", "2026-12-25T23:00"),
        ("2026-12-25", "2026-12-25T23:00", ""),
        ("2026-12-25 12:00-18:00", "2026-12-25T11:00", "2026-12-25T17:00"),
        ("2026-12-24..2027-01-02 closed", "2026-12-31T12:00", "2027-01-02T23:00"),
        ("2026-12-24 18:00..2026-12-27 06:00", "2026-12-24T17:00", "2026-12-27T05:00"),
        ("2026-12-24 18:00..2026-12-27", "2026-12-26T17:00", "2026-12-27T23:00"),
        ("every 12-25", "2031-12-25T12:00", "2031-12-25T23:00"),
        ("every 12-24..01-01", "2031-01-01T12:00", "2031-01-01T23:00"),
        ("every 12-31 22:00-06:00", "2031-01-01T04:00", "2031-01-01T05:00"),
        ("every 02-29", "2028-02-29T12:00", "2028-02-29T23:00"),
        ("every 02-28 22:00-02:00", "2027-03-01T00:30", "2027-03-01T01:00"),
        ("every 02-29 22:00-02:00", "2027-03-01T00:30", ""),
        ("sat,sun", "2026-11-28T12:00", "2026-11-29T23:00"),
        ("fri-mon", "2026-11-28T12:00", "2026-11-30T23:00"),
        ("Saturday, Sunday closed", "2026-11-28T12:00", "2026-11-29T23:00"),
        ("mon-fri 09:00-17:30", "2026-11-27T16:29", "2026-11-27T16:30"),
        ("sun 22:00-06:00", "2026-11-30T04:59", "2026-11-30T05:00"),
        ("22:00-06:00", "2026-11-27T22:00", "2026-11-28T05:00"),
        ("daily 22:00-06:00", "2026-11-27T22:00", "2026-11-28T05:00"),
        ("every mon 9:00-10:00", "2026-11-30T08:30", "2026-11-30T09:00"),
        ("22:00-00:00", "2026-11-27T22:00", "2026-11-27T23:00"),
        # Entries that overlap or touch are joined.
        ("sat,sun\n2026-11-30\n2026-12-01 00:00-09:00", "2026-11-28T12:00", "2026-12-01T08:00"),
        ("00:00-12:00\n12:00-24:00", "2026-11-28T12:00", "never"),
        ("2026-01-01..2036-12-31", "2026-11-28T12:00", "never"),
        ("2026-01-01..2036-10-31", "2026-11-28T12:00", "2036-10-31T23:00"),
        # Madrid 2026-03-29: the clocks skip 02:00 to 03:00 (01:00 UTC).
        ("2026-03-29 02:15-02:45", "2026-03-29T01:00", ""),
        ("2026-03-29 02:30-04:00", "2026-03-29T01:00", "2026-03-29T02:00"),
        ("2026-03-29 01:00-02:30", "2026-03-29T00:30", "2026-03-29T01:00"),
        ("2026-03-29 01:00-02:00\n2026-03-29 03:00-04:00", "2026-03-29T00:30", "2026-03-29T02:00"),
        # Madrid 2026-10-25: the clocks show 02:00 to 03:00 twice (00:00 to 02:00 UTC).
        ("2026-10-25 02:00-02:30", "2026-10-25T00:15", "2026-10-25T00:30"),
        ("2026-10-25 02:00-02:30", "2026-10-25T01:15", ""),
        ("2026-10-25 02:30-03:00", "2026-10-25T01:15", "2026-10-25T02:00"),
        ("2026-10-25 03:00-04:00", "2026-10-25T01:59", ""),
        # Empty lines and comments.
        ("# holidays\n\n   2026-12-25   \r\n", "2026-12-25T12:00", "2026-12-25T23:00"),
    ],
)  # fmt: skip
def test_what_an_entry_excludes(entries: str, instant: str, end: str) -> None:
    assert until(entries, instant) == end


def test_the_reason_is_that_of_the_first_line_that_excludes() -> None:
    found = parse_calendar("2026-12-25 Christmas\n2026-12-25..2026-12-26 closed\n22:00-06:00", "UTC")
    reasons = [found.blocked(utc(f"2026-12-{at}")) for at in ("25T12:00", "26T12:00", "27T05:00")]
    assert [blocked.reason if blocked else "" for blocked in reasons] == ["Christmas", "closed", "22:00-06:00"]
    assert {blocked.until for blocked in reasons if blocked} == {utc("2026-12-27T06:00")}


def test_a_label_cannot_hide_anything() -> None:
    found = parse_calendar("2026-12-25 a\u202eb\x1b[1m", "UTC").blocked(utc("2026-12-25T12:00"))
    assert found is not None
    assert found.reason == "a\\u202eb\\x1b[1m"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("25.12.2026", "is no entry. Write a date (2026-12-25)"),
        ("2026-02-30", "there is no day 2026-02-30"),
        ("1969-12-31", "between the years 1970 and 9998"),
        ("9999-01-01", "between the years 1970 and 9998"),
        ("every 25-12", "Write the month first, as in 12-25"),
        ("every 02-30", "no year has a day 02-30"),
        ("every 12-24..01-02 09:00-10:00", "a range of days has no window"),
        ("2026-01-05..2026-01-01", "not later than its beginning"),
        ("2026-01-05 10:00..2026-01-05 10:00", "not later than its beginning"),
        ("2026-01-05..2026-01-07 09:00-10:00", "neither a window nor a reason"),
        ("sat 09:00", "neither a window nor a reason"),
        ("mon-fri 9:00-5:00 pm", "in 24 hours"),
        ("mon-fri 9-17", "neither a window nor a reason"),
        ("2026-12-25, 2026-12-26", "is no entry"),
        ("22:00-22:00", "A whole day is 00:00-24:00"),
        ("24:00-06:00", "there is no time 24:00 here"),
        ("09:60-10:00", "there is no time 09:60 here"),
        ("mon-wed-fri", "no range of days"),
        ("2026-12-25x", "is no entry"),
        ("fri13", "is no entry"),
        ("every", "is no entry"),
        ("٢٠٢٦-١٢-٢٥", "is no entry"),
        ("2026-12-25 " + "x" * 300, "at most 300 characters"),
        ("\x00", "“\\x00” is no entry"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_refused_with_its_number_and_a_sentence(line: str, said: str) -> None:
    with pytest.raises(CalendarError, match=r"^Line 3: ") as caught:
        parse_entries(f"# a comment\n2026-01-01\n{line}\nalso wrong")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500
    assert [text[:7] for text in wrong_lines(f"x\n2026-01-01\n{line}", 5)] == ["Line 1:", "Line 3:"]


def test_a_zone_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CalendarError, match="did you mean 'Europe/Madrid'"):
        parse_calendar("sat", "europe/madrid")


def test_the_bounds_of_a_text() -> None:
    """A calendar with as many entries as are allowed is read once, and answers many questions."""
    days = (date(1990, 1, 1) + timedelta(days=2 * (number % 20_000)) for number in range(MOST_ENTRIES))
    text = "\n".join(f"{day}" for day in days)
    found = parse_calendar(text, MADRID)
    assert len(found.reasons) == MOST_ENTRIES
    assert sum(1 for _ in found.exclusions(utc("2026-01-01"), utc("2027-01-01"))) in (183, 184)
    with pytest.raises(CalendarError, match="Line 4: a calendar has at most 2 entries"):
        parse_entries("sat\n#\nsun\nmon", most=2)
    with pytest.raises(CalendarError, match="at most 2,000,000 characters"):
        parse_entries("#" * (LONGEST_TEXT + 1))


EACH_MINUTE = "\n".join(f"{m // 60:02}:{m % 60:02}-{(m + 1) // 60:02}:{(m + 1) % 60:02} r{m}" for m in range(1440))
NEVER_ENDS = {
    "once": ("00:00-24:00\n" * 10, "00:00-24:00", "00:00-24:00"),
    "each minute of each day": (EACH_MINUTE, "r720", "r719"),
    "a day of each year, too": (f"every 12-25 Christmas\n{EACH_MINUTE}", "r720", "r719"),
}
"""Entries that exclude everything, and what they say of 12:00 and of 11:59."""


@pytest.mark.parametrize("kind", NEVER_ENDS)
def test_an_exclusion_is_searched_once_for_all_its_instants(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end is as quickly found if each of its minutes has another entry, and if an earlier instant is asked last."""
    entries, noon, before = NEVER_ENDS[kind]
    found, now, looked = parse_calendar(entries, "UTC"), utc("2026-01-01T12:00"), 0
    of_day = Days.of_day

    def counted(days: Days, ordinal: int) -> object:
        nonlocal looked
        looked += 1
        return of_day(days, ordinal)

    monkeypatch.setattr(Days, "of_day", counted)
    for number in range(500):
        assert found.blocked(now + number * DAY / 24) is not None
        assert found.blocked(now - number * DAY / 24) is not None
    assert found.blocked(now) == Blocked(None, noon)
    assert found.blocked(now - MINUTE) == Blocked(None, before)
    assert looked < 2_000 + 4_000
    assert found.first_from(now - 900 * DAY, now) == now - 900 * DAY
    assert next(found.exclusions(now, now + DAY)).until is None
    assert looked < 2_000 + 3 * 4_000


def test_the_reasons_of_an_exclusion_with_many_entries_are_its_first_ones() -> None:
    found = parse_calendar(EACH_MINUTE, "UTC")
    (one,) = found.exclusions(utc("2026-01-01T12:00"), utc("2027-01-01"))
    assert one.reasons == ("r720", "r721", "r722", "r723", "r724")


@examples(30)
@given(st.data())
def test_the_order_of_the_questions_does_not_matter(data: st.DataObject) -> None:
    tz, day = data.draw(st.sampled_from(CHANGES))
    lines = [line.text for line in data.draw(brute_calendar.around(day, 4))]
    start = datetime(day.year, day.month, day.day, tzinfo=UTC) - 2 * DAY
    instants = [start + MINUTE * data.draw(st.integers(0, 4 * 1440)) for _ in range(20)]
    found = parse_calendar("\n".join(lines), tz)
    for instant in instants:
        assert found.blocked(instant) == parse_calendar("\n".join(lines), tz).blocked(instant)


CHANGES = [
    ("Europe/Madrid", date(2026, 3, 29)), ("Europe/Madrid", date(2026, 10, 25)),
    ("America/New_York", date(2026, 11, 1)), ("Australia/Lord_Howe", date(2026, 4, 5)),
    ("Australia/Lord_Howe", date(2026, 10, 4)), ("America/Sao_Paulo", date(2018, 11, 4)),
    ("America/Sao_Paulo", date(2018, 2, 18)), ("Pacific/Apia", date(2011, 12, 30)), ("UTC", date(2028, 2, 29)),
]  # fmt: skip


WEEK = int(os.environ.get("TEST_CALENDAR_DAYS", "4"))
"""How many days are compared, minute by minute. Weeks are the full volume."""


@examples(6)
@given(st.data())
def test_every_minute_around_clock_changes_is_as_the_simple_implementation_says(data: st.DataObject) -> None:
    tz, day = data.draw(st.sampled_from(CHANGES))
    lines = data.draw(brute_calendar.around(day, 4))
    start = datetime(day.year, day.month, day.day, tzinfo=UTC) - timedelta(days=2)
    wanted = brute_calendar.excluded(lines, tz, start, start + timedelta(days=WEEK))
    found = parse_calendar("\n".join(line.text for line in lines), tz)
    ends: dict[datetime, datetime | None] = {}
    end: datetime | None = None
    for instant, is_excluded in reversed(wanted):
        if not is_excluded:
            end = instant
        ends[instant] = end
    for instant, is_excluded in wanted:
        blocked = found.blocked(instant + timedelta(seconds=59))
        assert (blocked is not None) == is_excluded, instant
        if blocked is not None and ends[instant] is not None:
            assert blocked.until == ends[instant], instant
    starts = [here[0] for before, here in pairwise(wanted) if here[1] and not before[1]]
    spans = list(found.exclusions(start, wanted[-1][0]))
    assert [span.start for span in spans if span.start > start] == starts
    for span in spans:
        assert span.until is None or span.until not in ends or span.until == ends[span.start]


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 15), st.integers(0, 9)), max_size=8))
def test_flat_spans_hold_the_same_minutes(raw: list[tuple[int, int, int]]) -> None:
    spans = [(first, first + length, number) for first, length, number in raw]
    flat = flatten(spans)
    assert all(before[1] <= after[0] for before, after in pairwise(flat))
    assert all(before[1:] != (after[0], after[2]) for before, after in pairwise(flat))
    for minute in range(60):
        wanted = min((number for first, end, number in spans if first <= minute < end), default=None)
        assert next((number for first, end, number in flat if first <= minute < end), None) == wanted


@examples(60)
@given(st.text("0123456789-.:, #everysatmon\t\r\n\x00\x85\u2028\u0662\ud800é", max_size=40))
def test_any_text_is_read_or_refused_with_a_sentence(text: str) -> None:
    try:
        found = parse_calendar(text, MADRID)
    except CalendarError as error:
        said = str(error)
    else:
        said = "Line 0: usable"
        found.blocked(utc("2026-11-26T12:00"))
    assert said.startswith("Line ")


def test_the_next_excluded_occurrences_of_a_schedule() -> None:
    cron, now = parse("0 8 * * *"), utc("2026-11-26T12:00")
    holidays = parse_calendar("every 12-25 Christmas\nevery 01-01 New Year", MADRID)
    freeze = Freeze(now, utc("2026-11-28T12:00"), "the warehouse moves")
    found = list(excluded_runs(lambda after: next_after(cron, MADRID, after), [holidays, freeze], now, 5))
    assert [(f"{run.instant:%y-%m-%d}", run.blocked.reason, run.source) for run in found] == [
        ("26-11-27", "the warehouse moves", 1), ("26-11-28", "the warehouse moves", 1), ("26-12-25", "Christmas", 0),
        ("27-01-01", "New Year", 0), ("27-12-25", "Christmas", 0),
    ]  # fmt: skip


def test_what_the_clocks_skip_is_no_exclusion() -> None:
    found = parse_calendar("2026-03-29 02:15-02:45\n2026-03-29 04:00-05:00", MADRID)
    spans = found.exclusions(utc("2026-03-29"), utc("2026-03-30"))
    assert [(f"{span.start:%H:%M}", span.reasons) for span in spans] == [("02:00", ("2026-03-29 04:00-05:00",))]


def test_a_rare_exclusion_of_a_frequent_schedule_is_found() -> None:
    cron, christmas = parse("* * * * *"), parse_calendar("every 12-25", "UTC")
    found = excluded_runs(lambda after: next_after(cron, "UTC", after), [christmas], utc("2026-02-01"), 2)
    assert [f"{run.instant:%m-%d %H:%M}" for run in found] == ["12-25 00:00", "12-25 00:01"]


def test_the_search_for_excluded_occurrences_is_bounded() -> None:
    cron, now, asked = parse("0 8 * * 1"), utc("2026-11-26T12:00"), 0

    def next_run(after: datetime) -> datetime:
        nonlocal asked
        asked += 1
        return next_after(cron, "UTC", after)

    assert list(excluded_runs(next_run, [parse_calendar("tue", "UTC")], now, 20)) == []
    assert asked < 600
    assert list(excluded_runs(next_run, [parse_calendar("", "UTC")], now, 20)) == []
    assert list(excluded_runs(lambda _after: None, [Freeze(now, None, "x")], now, 20)) == []


@pytest.mark.parametrize(
    ("entries", "last"),
    [
        ("sat,sun\nevery 12-25\n22:00-06:00", None),
        ("", None),
        ("2026-12-24..2027-01-02\n2026-03-01", date(2027, 1, 2)),
        ("2026-12-31 22:00-06:00", date(2027, 1, 1)),
        ("2026-12-31 22:00-24:00", date(2026, 12, 31)),
    ],
)
def test_the_last_day_of_the_entries_that_name_a_year(entries: str, last: date | None) -> None:
    assert parse_calendar(entries, "Europe/Berlin").last_date == last
