"""Each instant of a year: random schedules with rules of their own, held against a slow model.

TEST_YEAR_SCHEDULES=200 TEST_YEAR_DAYS=365 is the full volume. TEST_FUZZ_SEED chooses the seed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from scheduling.core.assigned import Assigned
from scheduling.core.calendars import parse_calendar
from scheduling.core.cron import parse
from scheduling.core.expected import expected
from scheduling.core.nominal import NominalTimes
from scheduling.core.timing import MissedRuns, OnExcluded, Timing
from tests.core.brute import utc
from tests.core.random_schedules import RandomCalendar, RandomSchedule, random_calendars, random_schedule
from tests.core.slow_year import SlowCalendar, Told, fates, nominal
from tests.hostile.fuzz import generator, report

SCHEDULES = int(os.environ.get("TEST_YEAR_SCHEDULES", "3"))
DAYS = int(os.environ.get("TEST_YEAR_DAYS", "21"))
BEGIN = utc("2026-03-06T00:00")
MARGIN = timedelta(days=35)
"""The model looks so much further, because the offset and the hold of an occurrence depend on the next one."""


def assigned(schedule: RandomSchedule, number: int, calendars: list[RandomCalendar]) -> Assigned:
    calendar = None if schedule.calendar is None else calendars[schedule.calendar]
    timing = Timing(
        within=timedelta(days=1), spread=timedelta(seconds=schedule.spread or 0), each=schedule.each,
        missed_runs=MissedRuns(schedule.missed), on_excluded=OnExcluded.HOLD if schedule.hold else OnExcluded.SKIP,
        excluded=None if calendar is None else parse_calendar(calendar.entries, calendar.tz).blocked,
    )  # fmt: skip
    cron = None if schedule.date is not None else parse(schedule.expression)
    times = NominalTimes(cron, schedule.tz, schedule.date, since=schedule.since, until=schedule.until)
    return Assigned(times, timing, number)


def told(own: Assigned, begin: datetime, end: datetime) -> Iterator[Told]:
    """What the software says of the occurrences in (begin, end]. It is asked again where its answer ends."""
    first = own.times.after(begin)
    while first is not None:
        last = first
        for one in expected(own, first):
            if one.first > end:
                return
            assert one.last is not None
            yield Told(one.first, one.last, one.count, one.fate.value, one.starts_at, one.why)
            last = one.last
        first = own.times.after(last)


@pytest.mark.long
def test_each_instant_of_a_year_is_what_the_model_says() -> None:
    pick = generator("year")
    end = BEGIN + timedelta(days=DAYS)
    calendars = random_calendars(pick, max(2, SCHEDULES // 10), BEGIN, DAYS)
    slow = [SlowCalendar(one, BEGIN, end + MARGIN) for one in calendars]
    count = starts = 0
    for number in range(1, SCHEDULES + 1):
        schedule = random_schedule(pick, BEGIN, DAYS, len(calendars))
        own = assigned(schedule, number, calendars)
        instants = nominal(schedule, BEGIN, end + MARGIN)
        own_calendar = None if schedule.calendar is None else slow[schedule.calendar]
        wanted = [one for one in fates(schedule, number, instants, own_calendar) if one.first <= end]
        found = list(told(own, BEGIN, end))
        assert found == wanted, schedule
        until_end = [instant for instant in instants if instant <= end]
        assert own.times.count(BEGIN, end) == len(until_end), schedule
        assert own.times.last(BEGIN, end) == (until_end[-1] if until_end else None), schedule
        count += len(until_end)
        starts += sum(one.starts_at is not None for one in wanted)
    report("each instant of a year", schedules=SCHEDULES, days=DAYS, instants=count, starts=starts)
    assert starts or SCHEDULES < 10
