"""What pages, alerts and the answer to "why" tell of schedules with rules of their own."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice, pairwise

from scheduling.core.assigned import Assigned
from scheduling.core.cron import parse
from scheduling.core.deadlines import deadlines, time_of_day
from scheduling.core.expected import (
    MOST_NOT_RUN,
    Fate,
    expected,
    fate_of,
    last_to_run,
    next_start,
    nominal_of_start,
    starts_per_hour,
)
from scheduling.core.hours import hours_from
from scheduling.core.nominal import NominalTimes
from scheduling.core.timing import OnExcluded, Timing
from scheduling.core.why_at import Answer, Facts, answer
from tests.core.brute import utc
from tests.core.slow_timing import DAY, MINUTE, SECOND, Window

HOUR = timedelta(hours=1)
NINE = utc("2026-07-01T09:00")
HOLIDAY = Window(NINE + DAY - HOUR, NINE + DAY + HOUR * 5, "holiday")


def own(expression: str = "0 9 * * *", spread: timedelta = timedelta(0), *, each: bool = False) -> Assigned:
    return Assigned(NominalTimes(parse(expression), "UTC"), Timing(within=DAY, spread=spread, each=each), 7)


def with_holiday(made: Assigned, mode: OnExcluded) -> Assigned:
    excluded = {"excluded": lambda at: HOLIDAY if HOLIDAY.start <= at < HOLIDAY.until else None}
    return replace(made, timing=replace(made.timing, on_excluded=mode, **excluded))


def test_an_excluded_occurrence_has_no_deadline() -> None:
    now = NINE + DAY + HOUR * 2
    usual = deadlines(None, None, "UTC", time_of_day("10:00"), now, own())
    assert NINE + DAY in [one.occurrence for one in usual.found]
    excluded = deadlines(None, None, "UTC", time_of_day("10:00"), now, with_holiday(own(), OnExcluded.SKIP))
    assert NINE + DAY not in [one.occurrence for one in excluded.found]
    held = with_holiday(own(), OnExcluded.HOLD)
    assert last_to_run(held, NINE, NINE + DAY + HOUR * 4) is None
    assert last_to_run(held, NINE, NINE + DAY + HOUR * 5) == NINE + DAY


def test_starts_are_counted_where_they_happen() -> None:
    spread = own("0 * * * *", timedelta(hours=23))
    edges = hours_from(NINE)
    assert starts_per_hour(spread, edges) == [
        sum(start <= spread.at(NINE + HOUR * hour) < end for hour in range(-24, 25)) for start, end in pairwise(edges)
    ]
    held = with_holiday(own("0 * * * *"), OnExcluded.HOLD)
    counts = starts_per_hour(held, hours_from(NINE + DAY))
    assert counts[:7] == [0, 0, 0, 0, 0, 1, 1]


def test_the_next_start_is_that_of_an_occurrence_that_waits() -> None:
    for each in (False, True):
        spread = own("0 * * * *", timedelta(hours=20), each=each)
        starts = [spread.at(NINE + HOUR * hour) for hour in range(-30, 5)]
        for second in range(0, 7200, 311):
            after = NINE + SECOND * second
            assert next_start(spread, after) == min(start for start in starts if start > after)


def test_a_typed_minute_finds_the_occurrence_that_starts_then() -> None:
    for each in (False, True):
        spread = own("30 * * * *", HOUR, each=each)
        for hour in range(30):
            nominal = NINE + HOUR * hour + MINUTE * 30
            minute = spread.at(nominal).replace(second=0)
            assert nominal_of_start(spread, minute) in (nominal, None if minute == nominal else nominal)
            assert nominal_of_start(spread, minute + MINUTE) is None


def test_why_knows_what_is_excluded_held_and_spread() -> None:
    base = Facts(
        at=NINE, now=NINE + MINUTE, due=True, recorded=False, counted=False, active=True,
        created_at=NINE - DAY, next_run_at=NINE,
    )  # fmt: skip
    later = NINE + HOUR
    assert answer(replace(base, fate=Fate.EXCLUDED)) is Answer.EXCLUDED
    assert answer(replace(base, fate=Fate.HELD, starts_at=later)) is Answer.HELD
    assert answer(replace(base, fate=Fate.HELD)) is Answer.HELD
    assert answer(replace(base, fate=Fate.RUNS, starts_at=later)) is Answer.SPREAD
    assert answer(replace(base, fate=Fate.RUNS, starts_at=NINE)) is Answer.WAITS
    assert answer(replace(base, now=NINE - HOUR, fate=Fate.EXCLUDED)) is Answer.WILL_BE_EXCLUDED
    assert answer(replace(base, now=NINE - HOUR, fate=Fate.HELD, starts_at=later)) is Answer.WILL_RUN
    found = fate_of(with_holiday(own(), OnExcluded.SKIP), NINE + DAY)
    assert found is not None
    assert (found.fate, found.why) == (Fate.EXCLUDED, "holiday")
    assert fate_of(own(), NINE + MINUTE) is None


def test_runs_are_told_although_much_between_them_does_not_run() -> None:
    """Each second occurrence is excluded. Only of those in a row that do not run, the number is limited."""

    def excluded(at: datetime) -> Window | None:
        return Window(at, at + MINUTE, "odd") if at.hour % 2 else None

    made = own("0 * * * *")
    made = replace(made, timing=replace(made.timing, excluded=excluded))
    told = list(islice(expected(made, NINE), 400))
    assert [one.fate for one in told] == [Fate.EXCLUDED, Fate.RUNS] * 200
    never = replace(made, timing=replace(made.timing, excluded=lambda at: Window(at, at + MINUTE, "each")))
    assert len(list(expected(never, NINE))) == MOST_NOT_RUN
