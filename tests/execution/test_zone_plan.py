"""A producer with newer zone data plans the schedules anew: nothing fires at its old instant, and none runs twice."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone as clock

from scheduling.core.zone_data import is_newer
from scheduling.core.zones import zone
from scheduling.execution import zone_plan
from scheduling.execution.claim import claim_due
from scheduling.models import MovedRun, Process, Scheduler, SchedulerExecution, ZoneData
from scheduling.monitoring.findings import zone_data as findings
from scheduling.monitoring.findings.present import Present
from scheduling.processes.zone_files import own_zone_data
from tests.execution.zone_change import NEW, OLD, data, producer
from tests.factories import GroupFactory, ProcessFactory, SchedulerFactory, due
from tests.support import at_once

pytestmark = pytest.mark.django_db
MADRID = "Europe/Madrid"


@pytest.fixture(autouse=True)
def few_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets of all zones take a second of the processor."""
    monkeypatch.setattr(zone_plan, "zone_names", lambda: frozenset({"UTC", MADRID, "Asia/Tokyo"}))


@pytest.fixture
def started() -> None:
    """A producer with the old data has run before, and has recorded the offsets of all zones."""
    with data(OLD):
        producer(clock.now())


def offset_hours(instant: datetime) -> int:
    """The hours by which Madrid is ahead of UTC: 1 or 2."""
    return int((instant.astimezone(zone(MADRID)).utcoffset() or timedelta()).total_seconds()) // 3600


def planned(row: Scheduler) -> datetime:
    row.refresh_from_db()
    assert row.next_run_at is not None
    return row.next_run_at


def test_the_first_data_is_recorded_and_moves_nothing(started: None) -> None:
    row = ZoneData.objects.get()
    assert (row.version, row.digest, row.passes, row.moved) == ("2026a", "old", 1, 0)
    assert set(row.offsets) == {"UTC", MADRID, "Asia/Tokyo"}
    assert row.offsets["UTC"] == [[row.offsets["UTC"][0][0], 0]]
    assert len(row.offsets[MADRID]) > 19  # two changes a year
    own = own_zone_data()
    assert len(own.digest) == 64
    assert is_newer(own.version, "2000a")


def test_new_data_moves_the_next_runs_and_lists_them(started: None) -> None:
    fixed = SchedulerFactory(schedule="0 8 * * *", timezone=MADRID, group=GroupFactory())
    others = [
        SchedulerFactory(schedule="0 8 * * *", timezone="UTC"), SchedulerFactory(schedule="0 * * * *", timezone=MADRID),
        SchedulerFactory(schedule="0 8 * * *", timezone=MADRID, off=True), SchedulerFactory(once=True, timezone=MADRID),
    ]  # fmt: skip
    before = {row.pk: row.next_run_at for row in others}
    old = planned(fixed)
    with data(NEW, {MADRID: "Europe/London"}):
        producer(clock.now())
    assert planned(fixed) == old + timedelta(hours=1)
    assert {row.pk: row.next_run_at for row in Scheduler.objects.exclude(pk=fixed.pk)} == before
    moved = MovedRun.objects.get()
    assert (moved.scheduler, moved.group, moved.old_at, moved.new_at) == (fixed, fixed.group, old, planned(fixed))
    row = ZoneData.objects.get(digest="new")
    assert (row.moved, row.passes, row.done_at is not None) == (1, 1, True)
    (finding,) = findings.examine(Present(clock.now()))
    assert (finding.check, finding.rows[0].pk) == ("moved runs", fixed.pk)
    assert "from " in finding.rows[0].about


def test_nothing_is_claimed_at_its_old_instant(started: None) -> None:
    """It falls due while no producer runs. The producer that starts then has new data, with which it is due later."""
    row = SchedulerFactory(schedule="0 8 * * *", timezone=MADRID)
    now = clock.now()
    today = now.replace(hour=8 - offset_hours(now), minute=0, second=0, microsecond=0)
    due(row, today)
    at = today + timedelta(minutes=10)
    with data(NEW, {MADRID: "Europe/London"}):
        producer(at)
        assert claim_due(at, embedded=True).claimed == []
        assert planned(row) == today + timedelta(hours=1)
        (run,) = claim_due(at + timedelta(hours=1), embedded=True).claimed
    assert run.scheduled_at == today + timedelta(hours=1)
    assert SchedulerExecution.objects.count() == 1


def test_a_run_whose_new_instant_has_passed_is_due_at_once(started: None) -> None:
    row = SchedulerFactory(schedule="0 8 * * *", timezone=MADRID)
    now = clock.now()
    today = now.replace(hour=8 - offset_hours(now), minute=0, second=0, microsecond=0)
    due(row, today)
    at = today - timedelta(minutes=10)
    with data(NEW, {MADRID: "Europe/Athens"}):
        producer(at)
        (run,) = claim_due(at, embedded=True).claimed
        assert run.scheduled_at == today - timedelta(hours=1)
        assert planned(row) == today + timedelta(hours=23)


def test_what_has_run_at_its_old_instant_does_not_run_at_the_new_one(started: None) -> None:
    row = SchedulerFactory(schedule="0 8 * * *", timezone=MADRID)
    now = clock.now()
    today = now.replace(hour=8 - offset_hours(now), minute=0, second=0, microsecond=0)
    due(row, today)
    assert len(claim_due(today, embedded=True).claimed) == 1
    with data(NEW, {MADRID: "Europe/London"}):
        producer(today + timedelta(minutes=30))
        assert planned(row) == today + timedelta(hours=25)


def test_the_work_goes_on_where_a_producer_died(started: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_plan.PlanLimits, "window", 2)
    monkeypatch.setattr(zone_plan.PlanLimits, "seconds", -1)
    monkeypatch.setattr(zone_plan.PlanLimits, "soon", 0)
    rows = [SchedulerFactory(schedule="0 8 * * *", timezone=MADRID) for _ in range(5)]
    before = [planned(row) for row in rows]
    now = clock.now()
    with data(NEW, {MADRID: "Europe/London"}):
        zone_plan.adopt(now)
        assert zone_plan.turn(now)
        assert [planned(row) != old for row, old in zip(rows, before, strict=True)] == [True, True, False, False, False]
        producer(now)  # another one
    assert [planned(row) - old for row, old in zip(rows, before, strict=True)] == [timedelta(hours=1)] * 5
    assert MovedRun.objects.count() == 5


def test_an_older_producer_plans_nothing_and_what_it_plans_meanwhile_is_moved_again(started: None) -> None:
    row = SchedulerFactory(schedule="0 8 * * *", timezone=MADRID)
    old, now = planned(row), clock.now()
    ProcessFactory(producer=True, info={zone_plan.INFO: "old"}, heartbeat_at=now + timedelta(minutes=5))
    with data(NEW, {MADRID: "Europe/London"}):
        producer(now)
        assert planned(row) == old + timedelta(hours=1)
    for turn in range(3):
        with data(OLD):
            producer(now)  # it starts anew, and changes nothing
            assert planned(row) == old + timedelta(hours=1)
        due(row, old)  # it has claimed one, and has planned the next one with its own data
        with data(NEW, {MADRID: "Europe/London"}):
            producer(now + timedelta(minutes=2 * turn + 2))
            assert planned(row) == old + timedelta(hours=1)
    assert ZoneData.objects.count() == 2
    Process.objects.update(heartbeat_at=now)
    due(row, old)
    with data(NEW, {MADRID: "Europe/London"}):
        producer(now + timedelta(minutes=30))
    assert planned(row) == old  # no producer with other data is alive, so nothing is looked at


def test_a_zone_that_is_gone_sets_its_schedules_aside(started: None) -> None:
    row, other = SchedulerFactory(timezone="Asia/Tokyo"), SchedulerFactory(schedule="0 8 * * *", timezone=MADRID)
    Scheduler.objects.filter(pk=row.pk).update(timezone="Mars/Base", planned_timezone="Mars/Base")
    ZoneData.objects.update(offsets={**ZoneData.objects.get().offsets, "Mars/Base": [[0, 0]]})
    old = planned(other)
    with data(NEW, {MADRID: "Europe/London"}):
        producer(clock.now())
    row.refresh_from_db()
    assert "Mars/Base" in row.plan_error
    assert planned(other) == old + timedelta(hours=1)


@pytest.mark.parametrize("damaged", [None, [], {MADRID: "x"}, {MADRID: [[1]]}, {MADRID: [["a", "b"]]}])
def test_damaged_offsets_stop_no_producer(started: None, damaged: object) -> None:
    SchedulerFactory(schedule="0 8 * * *", timezone=MADRID)
    if damaged is not None:
        ZoneData.objects.update(offsets=damaged)
    with data(NEW, {MADRID: "Europe/London"}):
        producer(clock.now())
    assert ZoneData.objects.count() == 2


def test_producers_with_different_data_are_told() -> None:
    for digest in ("old", "new"):
        ProcessFactory(producer=True, info={zone_plan.INFO: digest})
    (finding,) = findings.examine(Present(clock.now()))
    assert (finding.check, len(finding.rows)) == ("zone data", 2)


@pytest.mark.django_db(transaction=True)
def test_of_producers_at_once_one_moves_each_run() -> None:
    now = clock.now()
    with data(OLD):
        producer(now)
    rows = [SchedulerFactory(schedule="0 8 * * *", timezone=MADRID) for _ in range(3)]
    before = [planned(row) for row in rows]
    with data(NEW, {MADRID: "Europe/London"}):
        at_once([lambda: producer(now)] * 3)
        producer(now)
    assert [planned(row) - old for row, old in zip(rows, before, strict=True)] == [timedelta(hours=1)] * 3
    assert MovedRun.objects.count() == 3
    assert ZoneData.objects.count() == 2
