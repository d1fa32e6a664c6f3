"""Intervals (`@every`): what they mean, what is refused, and their instants beside the simple model `every`."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.clockchanges import Effect, changes_met, effect_on, moves_local_times
from scheduling.core.cron import CronError, ZoneError, count_between, last_between, next_after, parse, upcoming
from scheduling.core.describe import describe
from scheduling.core.dialect import MAX_LENGTH
from scheduling.core.intervals import FIRST_DAY, FIRST_INSTANT
from scheduling.core.needed_slots import due_ahead
from scheduling.core.timetables import require_whole_minutes
from scheduling.core.why_at import is_due, neighbours
from tests.core import brute, every
from tests.core.brute import APIA, LORD_HOWE, MADRID, ZONES, clock_changes, utc
from tests.hostile.fuzz import choose_seed
from tests.steps import steps
from tests.support import NOON, examples

TICK, SECOND, HOUR, DAY = timedelta(microseconds=1), timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize(
    ("written", "normalised", "words"),
    [
        ("@every 90m", "@every 1h30m", "Every 90 minutes, counted from 2001-01-01 00:00 UTC"),
        (" @EVERY  1H30M ", "@every 1h30m", "Every 90 minutes, counted from 2001-01-01 00:00 UTC"),
        ("@every 90m from 2001-01-01T00:00Z", "@every 1h30m", "Every 90 minutes, counted from 2001-01-01 00:00 UTC"),
        ("@every 90m from 2026-01-05t01:00+01:00", "@every 1h30m from 2026-01-05T00:00Z",
         "Every 90 minutes, counted from 2026-01-05 00:00 UTC"),
        ("@every 90m from 2026-01-05 00:00Z", "@every 1h30m from 2026-01-05T00:00Z",
         "Every 90 minutes, counted from 2026-01-05 00:00 UTC"),
        ("@every 06h", "@every 6h", "Every 6 hours, counted from 2001-01-01 00:00 UTC"),
        ("@every 60m", "@every 1h", "Every hour, counted from 2001-01-01 00:00 UTC"),
        ("@every 24h", "@every 24h", "Every 24 hours, counted from 2001-01-01 00:00 UTC"),
        ("@every 150m", "@every 2h30m", "Every 2 hours and 30 minutes, counted from 2001-01-01 00:00 UTC"),
        ("@every 60s", "@every 1m", "Every minute, counted from 2001-01-01 00:00 UTC"),
        ("@every 10s", "@every 10s", "Every 10 seconds, counted from 2001-01-01 00:00 UTC"),
        ("@every 3723s from 2026-01-05T00:00:07Z", "@every 1h2m3s from 2026-01-05T00:00:07Z",
         "Every 1 hour, 2 minutes and 3 seconds, counted from 2026-01-05 00:00:07 UTC"),
        ("@every 1d", "@every 1d at 00:00", "At 00:00, every day"),
        ("@every 1d at 8:00 from 2026-01-05", "@every 1d at 08:00 from 2026-01-05",
         "At 08:00, every day, from 2026-01-05"),
        ("@every 3d from 2026-01-05 at 08:00", "@every 3d at 08:00 from 2026-01-05",
         "At 08:00, every third day, counted from 2026-01-05"),
        ("@every 45d at 23:59", "@every 45d at 23:59", "At 23:59, every 45 days, counted from 2001-01-01"),
        ("@every 2w on fri at 08:00", "@every 2w on fri at 08:00",
         "At 08:00, every second Friday, counted from 2001-01-01"),
        ("@every 2w at 08:00 from 2026-01-09", "@every 2w on fri at 08:00 from 2026-01-09",
         "At 08:00, every second Friday, counted from 2026-01-09"),
        ("@every 2w on FRI, mon,mon at 08:00 from 2026-01-09", "@every 2w on mon,fri at 08:00 from 2026-01-09",
         "At 08:00, every second week on Monday and Friday, counted from 2026-01-09"),
        ("@every 12w on sun", "@every 12w on sun at 00:00",
         "At 00:00, every 12 weeks on Sunday, counted from 2001-01-01"),
        ("@every 1w on mon,wed", "@every 1w on mon,wed at 00:00", "At 00:00, every Monday and Wednesday"),
    ],
)  # fmt: skip
def test_an_interval_is_normalised_and_described(written: str, normalised: str, words: str) -> None:
    assert parse(written).expression == normalised
    assert parse(written) == parse(normalised)
    assert hash(parse(written)) == hash(parse(normalised))
    assert describe(written) == describe(normalised) == words


def test_the_beginning_of_intervals_that_name_none() -> None:
    assert FIRST_DAY.strftime("%A %Y-%m-%d") == "Monday 2001-01-01"
    assert datetime(2001, 1, 1, tzinfo=UTC) == FIRST_INSTANT


LENGTH, ON, AT, FROM = "interval", "on", "at", "from"


@pytest.mark.parametrize(
    ("expression", "field", "words"),
    [
        ("@every", LENGTH, "the length is missing; write '@every 90m'"),
        ("@every at 08:00", LENGTH, "the length is missing"),
        ("@every 90", LENGTH, "'90' has no unit; write '90m' for minutes."),
        ("@every 0m", LENGTH, "the shortest is '@every 1m'."),
        ("@every 0h0m", LENGTH, "the shortest is '@every 1m'."),
        ("@every 0d", LENGTH, "the shortest is '@every 1m'."),
        ("@every -5m", LENGTH, "'-5m' is not understood; write whole numbers with units"),
        ("@every 1.5h", LENGTH, "'1.5h' is not understood; write whole numbers"),
        ("@every 62135596801s", LENGTH, "longer than ten years; write at most 522w, 3660d, 87840h, 5270400m."),
        ("@every 3661d", LENGTH, "'3661d' is longer than ten years"),
        ("@every 523w", LENGTH, "longer than ten years"),
        ("@every " + "9" * 240 + "w", LENGTH, "longer than ten years"),
        ("@every 5min", LENGTH, "the unit 'min' is not known; write s, m (minutes), h, d or w."),
        ("@every 3mo", LENGTH, "For months and years, write a cron expression"),
        ("@every 1h1h", LENGTH, "write each unit once, and the longest first"),
        ("@every 30m1h", LENGTH, "such as '@every 1h30m'."),
        ("@every 1h 30m", LENGTH, "write the length without a space, such as '1h30m'."),
        ("@every 1d12h", LENGTH, "are not mixed; write hours alone, such as '@every 36h'"),
        ("@every 1w2d", LENGTH, "write days alone, such as '@every 10d'."),
        ("@every 90m starting now", LENGTH, "'starting' is not understood; only 'on', 'at' and 'from' may follow"),
        ("@every 2w on", ON, "something is missing after 'on'"),
        ("@every 2w on fry", ON, "'fry' is no weekday; write some of mon,tue,wed,thu,fri,sat,sun"),
        ("@every 2w on mon-fri", ON, "'mon-fri' is no weekday"),
        ("@every 2w on mon,,fri", ON, "remove the extra comma."),
        ("@every 3d on fri", ON, "only weeks have weekdays; write '@every 2w on fri', or leave 'on' out."),
        ("@every 6h on fri", ON, "only weeks have weekdays"),
        ("@every 6h at 08:00", AT, "write 'from 2026-01-05T08:00Z' instead of it."),
        ("@every 2d at 25:00", AT, "'25:00' is no time of the day; write one from 00:00 to 23:59."),
        ("@every 2d at 24:00", AT, "is no time of the day"),
        ("@every 2d at 08:60", AT, "is no time of the day"),
        ("@every 2d at 08:00:30", AT, "is no time of the day"),
        ("@every 2d at 08:00 at 09:00", AT, "'at' stands twice; write it once."),
        ("@every 2d from 2026-02-30", FROM, "there is no date '2026-02-30'"),
        ("@every 2d from 0000-01-01", FROM, "there is no date '0000-01-01'"),
        ("@every 2d from 10000-01-01", FROM, "'10000-01-01' is no date; write one of the years 0001 to 9999"),
        ("@every 2d from 2026-01-05T08:00", FROM, "write it without a time"),
        ("@every 2d from 2026-01-05 08:00", FROM, "write it without a time"),
        ("@every 6h from 2026-01-05", FROM, "'2026-01-05' needs a time and an offset, such as 2026-01-05T00:00Z"),
        ("@every 6h from 2026-01-05T08:00", FROM, "has no offset; write '2026-01-05T08:00Z'"),
        ("@every 6h from 2026-02-30T08:00Z", FROM, "there is no instant '2026-02-30T08:00Z'"),
        ("@every 6h from 2026-01-05T24:00Z", FROM, "there is no instant"),
        ("@every 6h from 2026-01-05T08:00+24:00", FROM, "there is no instant"),
        ("@every 6h from 2026-01-05T08:00+01:60", FROM, "there is no instant"),
        ("@every 6h from 2026-01-05T08:00:00.5Z", FROM, "is no instant; write one of the years 0001 to 9999"),
        ("@every 6h from 10000-01-01T00:00Z", FROM, "is no instant"),
        ("@every 6h from 0001-01-01T00:00+05:00", FROM, "lies outside the years 1-9999 in UTC"),
        ("@every 6h from 9999-12-31T23:00-05:00", FROM, "lies outside the years 1-9999 in UTC"),
    ],
)  # fmt: skip
def test_the_error_message_names_the_part_and_the_solution(expression: str, field: str, words: str) -> None:
    with pytest.raises(CronError) as caught:
        parse(expression)
    said = str(caught.value)
    assert words in said
    assert caught.value.field == field
    assert said.startswith(f"{field.capitalize()}: ")
    assert said.endswith(".")
    assert len(said) < 400


def test_only_some_intervals_count_seconds() -> None:
    for expression in ("@every 10s", "@every 90s", "@every 1m from 2026-01-05T00:00:30Z"):
        with pytest.raises(CronError, match=r"counts seconds, .* let the setting CRON_SECONDS be true"):
            require_whole_minutes(parse(expression))
    for expression in ("@every 120s", "@every 1m", "@every 1d", "* * * * *"):
        require_whole_minutes(parse(expression))


@pytest.mark.parametrize(
    ("expression", "tz", "after", "expected"),
    [
        # Madrid 2026-03-29: the clocks skip 02:00 to 03:00 (01:00 UTC).
        ("@every 1d at 02:30", MADRID, "2026-03-28T12", ["29 01:00", "30 00:30", "31 00:30"]),
        ("@every 2d at 02:30 from 2026-03-29", MADRID, "2026-03-01", ["29 01:00", "31 00:30", "02 00:30"]),
        ("@every 90m from 2026-03-29T00:00Z", MADRID, "2026-03-28T23", ["29 00:00", "29 01:30", "29 03:00"]),
        # Madrid 2026-10-25: the clocks show 02:00 to 03:00 twice (01:00 UTC).
        ("@every 1d at 02:30", MADRID, "2026-10-24T12", ["25 00:30", "26 01:30", "27 01:30"]),
        ("@every 30m", MADRID, "2026-10-25T00:15", ["25 00:30", "25 01:00", "25 01:30"]),
        # Apia skipped 2011-12-30: its run comes when the next day begins, and a run that is due then is the same one.
        ("@every 1d at 09:30", APIA, "2011-12-29", ["29 19:30", "30 10:00", "30 19:30"]),
        ("@every 1d at 00:00", APIA, "2011-12-29T11", ["30 10:00", "31 10:00", "01 10:00"]),
        # Lord Howe 2026-10-04: the clocks skip 02:00 to 02:30 (15:30 UTC on the day before).
        ("@every 1w on sun at 02:15", LORD_HOWE, "2026-10-01", ["03 15:30", "10 15:15", "17 15:15"]),
        # Weeks begin on Monday, and the week of the beginning counts.
        ("@every 2w on mon,fri at 08:00 from 2026-01-09", "UTC", "2026-01-01", ["09 08:00", "19 08:00", "23 08:00"]),
        ("@every 2w at 08:00 from 2026-01-11", "UTC", "2026-01-01", ["11 08:00", "25 08:00", "08 08:00"]),
    ],
)
def test_instants_of_the_table(expression: str, tz: str, after: str, expected: list[str]) -> None:
    assert [f"{found:%d %H:%M}" for found in upcoming(parse(expression), tz, utc(after), 3)] == expected


def check(model: every.Real | every.Days, tz: str, after: datetime, until: datetime) -> None:
    expected, timetable = model.fires(tz, after, until), parse(model.expression)
    assert parse(timetable.expression) == timetable
    assert describe(timetable.expression)
    found, here = [], after
    while (here := next_after(timetable, tz, here)) <= until:
        found.append(here)
    assert found == expected
    assert count_between(timetable, tz, after, until) == len(expected)
    assert last_between(timetable, tz, after, until) == (expected[-1] if expected else None)
    for one in expected[:3]:
        assert next_after(timetable, tz, one - TICK) == one
        assert last_between(timetable, tz, one - SECOND, one) == one
        assert count_between(timetable, tz, after, one) == expected.index(one) + 1


@examples(120)
@given(
    st.integers(0, 10**6), st.timedeltas(-5 * HOUR, 3 * HOUR), st.timedeltas(timedelta(0), 8 * HOUR), st.data()
)  # fmt: skip
def test_real_time_is_counted_as_the_model_counts(
    pick: int, start: timedelta, length: timedelta, data: st.DataObject
) -> None:
    tz, change = clock_changes()[pick % len(clock_changes())]
    after = change + start
    check(data.draw(every.real(after, 4 * HOUR)), tz, after, after + min(length, 2 * HOUR))


@examples(40)
@given(st.integers(0, 10**6), st.integers(-4, 1), st.integers(0, 5), st.data())
def test_days_around_clock_changes_are_those_of_the_model(pick: int, back: int, days: int, data: st.DataObject) -> None:
    tz, change = clock_changes()[pick % len(clock_changes())]
    check(data.draw(every.days(change)), tz, change + back * DAY - HOUR, change + (back + days) * DAY + HOUR)


@examples(80)
@given(
    st.sampled_from(ZONES), st.datetimes(datetime(2005, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    st.integers(1, 60), st.data(),
)  # fmt: skip
def test_the_dates_are_those_of_the_model(tz: str, near: datetime, runs: int, data: st.DataObject) -> None:
    model = data.draw(every.days(near))
    timetable = parse(model.expression)
    begin = datetime.combine(model.start, datetime.min.time(), UTC) - 2 * DAY
    instants = upcoming(timetable, "UTC", begin, runs)
    assert {found.date() for found in instants} == model.dates(instants[-1].date())
    local = upcoming(timetable, tz, near, runs)
    assert count_between(timetable, tz, near, local[-1]) == runs
    assert last_between(timetable, tz, near, local[-1] - TICK) == (local[-2] if runs > 1 else None)
    assert len(set(local)) == runs


def test_nothing_is_due_before_the_beginning() -> None:
    for expression, first in (
        ("@every 90m from 2030-01-05T00:10Z", utc("2030-01-05T00:10")),
        ("@every 10d at 08:00 from 2030-01-05", utc("2030-01-05T08:00")),
        ("@every 2w on mon,fri at 08:00 from 2030-01-04", utc("2030-01-04T08:00")),
    ):
        timetable = parse(expression)
        assert next_after(timetable, "UTC", NOON) == first
        assert last_between(timetable, "UTC", NOON, first - TICK) is None
        assert count_between(timetable, "UTC", NOON, first - TICK) == 0
        assert count_between(timetable, "UTC", NOON, first) == 1
        assert neighbours(timetable, "UTC", first) == (None, next_after(timetable, "UTC", first))


def test_an_interval_that_ends_with_the_calendar() -> None:
    end = utc("9999-12-31T23:59")
    for expression in ("@every 1m", "@every 1d", "@every 3h", "@every 2w", "@every 90m from 2099-01-01T00:00Z"):
        with pytest.raises(CronError, match="never fires again in UTC within 50 years"):
            next_after(parse(expression), "UTC", end if "2099" not in expression else NOON)
    assert last_between(parse("@every 1d"), "UTC", end - 2 * DAY, end) == utc("9999-12-31")


def test_errors_of_the_arguments() -> None:
    for expression in ("@every 90m", "@every 2d"):
        for call in (next_after, last_between, count_between):
            more = () if call is next_after else (NOON + DAY,)
            with pytest.raises(ZoneError):
                call(parse(expression), "Mars/Olympus", NOON, *more)  # type: ignore[operator]
            with pytest.raises(ValueError, match="needs a time zone"):
                call(parse(expression), "UTC", NOON.replace(tzinfo=None), *more)  # type: ignore[operator]


@pytest.mark.parametrize("expression", ["@every 1s from 0001-01-01T00:00Z", "@every 7m from 0001-01-02T00:00Z"])
def test_real_time_is_computed_in_a_few_steps(expression: str) -> None:
    """However far away the beginning is, and however long the time."""
    timetable, until = parse(expression), utc("9000-01-01")
    for call, more in ((next_after, ()), (last_between, (until,)), (count_between, (until,))):
        assert steps(call, timetable, MADRID, NOON, *more) <= 60
    assert steps(next_after, parse("@every 3d from 0001-01-02 at 08:00"), MADRID, NOON) <= 120


def test_the_effect_of_clock_changes() -> None:
    year = (utc("2026-01-01"), utc("2027-01-01"))
    daily, real = parse("@every 1d at 02:30"), parse("@every 90m")
    assert [change.effect for change in changes_met(daily, MADRID, *year)] == [Effect.MOVED, Effect.ONCE]
    assert changes_met(real, MADRID, *year) == []
    assert effect_on(daily, MADRID, utc("2026-03-29T01:00")) == (Effect.MOVED, 1)
    assert effect_on(parse("@every 30m"), MADRID, utc("2026-10-25T00:30")) == (Effect.TWICE, 1)
    assert effect_on(parse("@every 30m"), MADRID, utc("2026-10-25T01:30")) == (Effect.TWICE, 2)
    assert effect_on(real, MADRID, utc("2026-03-29T01:30")) is None
    assert [moves_local_times(parse(text), tz, *year) for text, tz in (
        ("@every 90m", MADRID), ("@every 20m", MADRID), ("@every 6h", "UTC"), ("@every 20m", LORD_HOWE),
        ("@every 1d", MADRID), ("0 3 * * *", MADRID),
    )] == [True, False, False, True, False, False]  # fmt: skip


def test_due_at_a_second_and_its_neighbours() -> None:
    timetable = parse("@every 10s")
    assert is_due(timetable, "UTC", NOON + 10 * SECOND)
    assert not is_due(timetable, "UTC", NOON + 11 * SECOND)
    assert neighbours(timetable, "UTC", NOON) == (NOON - 10 * SECOND, NOON + 10 * SECOND)
    ten_years = parse("@every 3660d from 2001-01-01")
    before, after = neighbours(ten_years, "UTC", NOON)
    assert (before and before.date(), after and after.date()) == (date(2021, 1, 16), date(2031, 1, 24))


def test_how_many_are_due_soon() -> None:
    """The queue needs slots for what is due within five minutes."""
    assert [due_ahead(text, NOON) for text in ("@every 1m", "@every 10s", "@every 90m", "@every 1d at 12:03")] == [
        5, 30, 1, 1,
    ]  # fmt: skip


PIECES = (
    "@every", "@EVERY", "@", "every", "90m", "1h30m", "0m", "3d", "2w", "10s", "999999999999s", "1d1h", "on", "at",
    "from", "fri", "mon,fri", "mon,", "08:00", "25:00", "8:0", "2026-01-05", "2026-02-30", "2026-01-05T00:00Z", "T",
    "Z", "+01:00", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "0000-00-00", "-", ":", ",", "0", "9" * 60,
    "%s", "{}", "<b>", "*",
)  # fmt: skip


def test_any_text_is_read_or_refused_with_a_sentence() -> None:
    """The header of pytest names the seed."""
    pick = random.Random(choose_seed())
    for _ in range(3_000):
        text = ""
        for _ in range(pick.randrange(1, 9)):
            text += pick.choice(PIECES) + pick.choice((" ", " ", " ", ""))
        if pick.random() < 0.9:
            text = f"@every {text}"
        try:
            timetable = parse(text)
        except CronError as error:
            said = str(error)
        else:
            said = ""
        if said:
            assert said.endswith("."), text
            assert len(said) < 500, text
            continue
        assert parse(timetable.expression) == timetable, text
        assert describe(text) == describe(timetable.expression), text
        try:
            found = next_after(timetable, MADRID, NOON)
        except CronError:
            continue
        assert count_between(timetable, MADRID, NOON, found) == 1, text
        assert last_between(timetable, MADRID, NOON, found) == found, text


@pytest.mark.parametrize("text", ["9", "1m", " on", " at", " from", "a", ":", "mon,", "T00:00Z "])
def test_a_huge_text_is_refused_at_once(text: str) -> None:
    assert steps(parse, "@every " + text * 1_000_000) <= 100
    assert steps(parse, ("@every " + text * 200)[:MAX_LENGTH]) <= 2_000


def test_brute_walks_intervals_as_fixed_schedules() -> None:
    """The model itself: 2 days from the 28th on, over the gap of Madrid."""
    model = every.Days("", 1, (), 2, 30, date(2026, 3, 28))
    assert model.fires(MADRID, utc("2026-03-27"), utc("2026-03-30T12")) == brute.fires(
        "30 2 * * *", MADRID, utc("2026-03-28"), utc("2026-03-30T12")
    )
