"""What previews say is what a simulated clock then makes, over clock changes, a downtime and a change of zone data.

TEST_TIMING_SCHEDULES=1000 is the full volume: four weeks without a break. TEST_FUZZ_SEED chooses the seed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db.models import Max

from scheduling.admin.schedulers.next_runs_panel import next_runs_panel
from scheduling.admin.schedulers.preview import TIMES, runs_preview
from scheduling.core.zones import zone
from scheduling.execution import zone_plan
from scheduling.models import MovedRun, Scheduler, SchedulerExecution
from scheduling.models.plan import PLAN
from scheduling.operations.next_runs import next_runs
from scheduling.testing import travel
from scheduling.testing.travel import Clock
from tests.core.brute import utc
from tests.core.random_schedules import CHANGING, STEADY, random_calendars, random_schedule
from tests.execution.foretold import Foretold, foretell, made_since
from tests.execution.zone_change import NEW, OLD, data, producer
from tests.factories import CalendarFactory, SchedulerFactory
from tests.hostile.fuzz import generator, report

pytestmark = pytest.mark.django_db

SCHEDULES = int(os.environ.get("TEST_TIMING_SCHEDULES", "24"))
IS_FULL = SCHEDULES > 100
BEGIN = utc("2026-03-07T15:00:31")
CHANGED = {
    "Europe/Berlin": "Africa/Lagos",  # gives up summer time, four days before it would begin
    "America/New_York": "America/Panama",  # goes back to winter time at once
    "Asia/Kathmandu": "Asia/Kolkata",
}
"""The zones that the new data changes, and the zones whose data they then have."""

SMALL = ("forward 2026-03-08T19:10:31", "jump 2026-03-22T00:20:31", "forward 2026-03-22T10:00:31",
         "jump 2026-03-25T07:50:31", "data 2026-03-25T07:50:31", "forward 2026-03-25T19:00:31",
         "jump 2026-03-28T22:00:31", "forward 2026-03-29T13:00:31", "jump 2026-04-04T12:00:31",
         "forward 2026-04-05T06:00:31")  # fmt: skip
"""The clock changes of 8, 22 and 29 March and 5 April, and new zone data. No producer runs between them."""
FULL = ("forward 2026-03-10T12:00:31", "forward 2026-03-13T12:00:31", "forward 2026-03-16T12:00:31",
        "jump 2026-03-17T21:07:31", "forward 2026-03-20T12:00:31", "forward 2026-03-22T16:00:31",
        "forward 2026-03-25T01:00:31", "jump 2026-03-25T07:50:31", "data 2026-03-25T07:50:31",
        "forward 2026-03-27T16:00:31", "forward 2026-03-30T04:00:31", "forward 2026-04-01T12:00:31",
        "jump 2026-04-01T12:09:31", "forward 2026-04-03T12:00:31", "forward 2026-04-05T20:00:31")  # fmt: skip
"""Four weeks with a downtime of a day, of some hours and of some minutes."""


class Journey:
    """Schedules beside a simulated clock. At each stop the previews are asked, and then held against what was made."""

    def __init__(self, clock: Clock, schedules: Sequence[Scheduler]) -> None:
        self._clock, self._schedules = clock, schedules
        self._last, self._unknown = 0, 0
        self.counts: Counter[str] = Counter()
        self._ask()

    def _ask(self) -> None:
        self._foretold: dict[int, Foretold] = {row.pk: foretell(row, self._clock.now) for row in self._schedules}

    def forward(self, to: datetime) -> None:
        self._clock.forward(to=to, most_runs=10**7)
        made = made_since(self._schedules, self._last)
        for schedule in self._schedules:
            said, found, until = self._foretold[schedule.pk], made[schedule.pk], to
            if said.reaches is not None and said.reaches <= to:
                until, self.counts["not_told_to_the_end"] = said.reaches, self.counts["not_told_to_the_end"] + 1
            wanted = [row for row in said.rows if row.at is not None and row.at <= until]
            compared = [row for row in found if row.at is not None and row.at <= until]
            last_ones = [row for row in compared if row._replace(at=None) in said.trailing]
            compared = [row for row in compared if row not in last_ones]
            assert Counter(compared) == Counter(wanted), _facts(schedule)
            self.counts += Counter(_kind(row.reason) for row in compared)
            self.counts["unseen"] += len(found) - len(compared) - len(last_ones)
        self._last = SchedulerExecution.objects.aggregate(last=Max("pk"))["last"] or 0
        self._ask()

    def jump(self, to: datetime) -> None:
        self._clock.jump(to=to)
        self._ask()

    def data(self, _at: datetime) -> None:
        """A producer starts with new zone data. The schedules are planned anew before it claims anything."""
        before = {row.pk: _plan(row) for row in self._schedules}
        producer(self._clock.now)
        after = {row.pk: _plan(row) for row in self._schedules}
        moved = {pk for pk in before if before[pk][0] != after[pk][0] or before[pk][1] != after[pk][1]}
        listed = {one.scheduler_id: (one.old_at, one.new_at) for one in MovedRun.objects.all()}
        assert listed.keys() == {pk for pk in moved if None not in (before[pk][1], after[pk][1])}
        for row in self._schedules:
            check_move(row, before[row.pk], after[row.pk], listed.get(row.pk), self._clock.now)
        self.counts["moved"] = len(listed)
        self._ask()


def _facts(row: Scheduler) -> str:
    """The columns that say when a schedule runs, for the message of a failure."""
    names = ("pk", *PLAN, "max_runs", "runs_counted", "counted_for", "next_nominal_at", "next_run_at")
    return str({name: str(getattr(row, name)) for name in names} | {"entries": row.calendar and row.calendar.entries})


def _kind(reason: str) -> str:
    return re.split(r"\W", reason)[0] or "runs"


def _plan(row: Scheduler) -> tuple[datetime | None, datetime | None]:
    """The first nominal instant that is not on record, and when a producer looks at the schedule."""
    row.refresh_from_db()
    return row.next_nominal_at or row.next_run_at, row.next_run_at


def check_move(
    row: Scheduler,
    before: tuple[datetime | None, datetime | None],
    after: tuple[datetime | None, datetime | None],
    listed: tuple[datetime, datetime] | None,
    now: datetime,
) -> None:
    """A planned local time stays, and its instant follows the new data. Real time and dates do not move."""
    old, new = before[0], after[0]
    if old is None or not row.status:
        assert after == before or (row.status and after[1] is not None and after[1] > now)
        return
    assert new is not None
    if listed is not None:
        assert listed in ((old, new), (before[1], after[1]))
    other = ZoneInfo(CHANGED.get(row.zone_name, row.zone_name))
    was, would = (_reading(old, info) for info in (ZoneInfo(row.zone_name), other))
    if was == would or row.date_time is not None or re.match(r"@every \d+m", row.schedule):
        assert new == old
    elif row.schedule[0] == "*" or row.schedule.split()[1][0] == "*":
        assert new >= min(old, now)  # what follows real time is due at no instant that has passed, unless it was missed
    elif (was - _reading(new, other)) != timedelta(0):
        # The clocks of the old data skip the planned local time, so that it is planned for the end of the gap.
        assert timedelta(0) < was - _reading(new, other) <= timedelta(hours=2)


def _reading(instant: datetime, info: ZoneInfo) -> datetime:
    return instant.astimezone(info).replace(tzinfo=None, fold=0)


@pytest.fixture
def zone_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    """The contexts with the zone data of producers. At first, it is the old data."""
    names = frozenset({*CHANGING, *STEADY})
    monkeypatch.setattr(zone_plan, "zone_names", lambda: names)
    with ExitStack() as stack:
        stack.enter_context(data(OLD))
        yield stack


def make(clock: Clock) -> list[Scheduler]:
    """Random schedules, of which many share a calendar."""
    pick = generator("preview")
    days = 29
    calendars = [
        CalendarFactory(timezone=one.tz, entries=one.entries)
        for one in random_calendars(pick, max(4, SCHEDULES // 20), BEGIN, days)
    ]
    made = list[Scheduler]()
    while len(made) < SCHEDULES:
        own = random_schedule(pick, BEGIN, days, len(calendars))
        calendar = None if own.calendar is None else calendars[own.calendar]
        made.append(SchedulerFactory(**own.columns, calendar=calendar, params={}))
    return made


@pytest.mark.long
def test_what_previews_say_is_what_the_clock_then_makes(zone_data: ExitStack) -> None:
    Scheduler.objects.all().delete()
    with travel(BEGIN) as clock:
        schedules = make(clock)
        producer(clock.now)
        check_panels(schedules[:200], clock.now)
        journey = Journey(clock, schedules)
        for leg in FULL if IS_FULL else SMALL:
            kind, at = leg.split()
            if kind == "data":
                zone_data.enter_context(data(NEW, CHANGED))
            getattr(journey, kind)(utc(at))
            if kind == "data":
                check_panels(schedules[:200], clock.now)
    report("preview", schedules=SCHEDULES, **journey.counts)
    told = sum(count for kind, count in journey.counts.items() if kind not in ("unseen", "not_told_to_the_end"))
    assert journey.counts["unseen"] <= told / 20
    assert journey.counts["moved"]


def check_panels(schedules: Sequence[Scheduler], now: datetime) -> None:
    """The page, and the form with the same values, show the starts that the preview tells."""
    for row in schedules:
        row.refresh_from_db()
        starts = [f"{run:%Y-%m-%d %H:%M:%S}" for run in next_runs(row, now=now)]
        assert _shown(next_runs_panel(row, now)) == starts
        if row.status and (row.next_nominal_at or row.next_run_at or now) > now:
            assert _shown(runs_preview(_typed(row), row)) == starts, _facts(row)


def _shown(panel: str) -> list[str]:
    return re.findall(r"data-viewer>([^<]+)</time>", panel)


def _typed(row: Scheduler) -> dict[str, str]:
    """The fields of the form with the values of a schedule."""
    info = zone(row.zone_name)
    typed = dict.fromkeys(TIMES, "")
    typed |= {"schedule": row.schedule, "timezone": row.timezone, "previewed": str(row.pk)}
    typed |= {"missed_runs": row.missed_runs, "on_excluded": row.on_excluded}
    typed |= {"spread_each": "on" if row.spread_each else "", "calendar": str(row.calendar_id or "")}
    for name in ("missed_cap", "max_runs", "runs_counted", "counted_for"):
        typed[name] = str(getattr(row, name) or "")
    for name in ("spread_seconds", "missed_within_seconds"):
        typed[name] = f"{getattr(row, name)}s" if getattr(row, name) else ""
    for name in ("date_time", "active_from", "active_until"):
        if (instant := getattr(row, name)) is not None:
            local = instant.astimezone(info)
            typed |= {f"{name}_0": f"{local:%Y-%m-%d}", f"{name}_1": f"{local:%H:%M:%S}"}
    return typed
