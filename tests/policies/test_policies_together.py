"""Policies of one schedule that meet: each keeps its promise beside the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone as clock

from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.visibility import EVERYTHING
from scheduling.operations import site_load
from scheduling.operations.occurrence_audit import audit_schedules
from tests.execution.backfills import MONDAY, dry_run
from tests.factories import CalendarFactory, SchedulerFactory
from tests.policies.after_world import HOUR, MINUTE, World, edge, last, schedule
from tests.support import NOON

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


def rows(schedule: Scheduler) -> list[tuple[str, datetime, datetime | None]]:
    found = SchedulerExecution.objects.filter(scheduler=schedule).order_by("scheduled_at", "pk")
    return list(found.values_list("state", "scheduled_at", "assigned_at"))


def waits_for_its_start(row: Scheduler) -> None:
    """The occurrence of NOON is spread: it starts half an hour later, and nothing is on record yet."""
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=NOON + 30 * MINUTE, next_nominal_at=NOON, planned_at=None)
    row.refresh_from_db()


@pytest.mark.any_database
def test_a_number_of_runs_is_exact_when_all_missed_runs_are_caught_up() -> None:
    row = SchedulerFactory(schedule="0 * * * *", timezone="UTC", missed_runs="all", max_runs=3)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=NOON - 5 * HOUR, planned_at=None)
    done = claim_due(NOON, embedded=True)
    assert len(done.claimed) == 3
    row.refresh_from_db()
    assert (row.status, row.pause_reason, row.runs_counted) == (False, "It has run 3 times.", 3)
    assert [state for state, *_instants in rows(row)].count("skipped") == 3  # each occurrence is on record


@pytest.mark.any_database
def test_a_start_deadline_counts_from_the_assigned_instant() -> None:
    columns = {"schedule": "0 12 * * *", "timezone": "UTC", "spread_seconds": 3_600, "start_within_seconds": 600}
    start = NOON
    while start == NOON:  # the offset is computed from the number of the schedule
        row = SchedulerFactory(**columns)
        start = NOON + site_load.offset_of(row.pk, row.spread_seconds, row.spread_each)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=start, next_nominal_at=NOON, planned_at=None)
    claim_due(start + MINUTE, embedded=True)
    (found,) = SchedulerExecution.objects.filter(scheduler=row)
    assert (found.state, found.scheduled_at, found.assigned_at) == ("queued", NOON, start)
    assert found.start_by == start + 10 * MINUTE


@pytest.mark.any_database
def test_a_run_that_waited_for_its_turn_then_waits_for_its_predecessor() -> None:
    world = World()
    first, second = edge(overlap="wait", after_span="previous")
    world.claim(first, second)
    world.start()
    world.end(last(first))
    world.start()
    opened = last(second)
    world.now += HOUR
    world.claim(first, second)
    waiting = last(second)
    assert (waiting.state, waiting.waits_for) == ("blocked", None)
    world.end(opened)
    world.sweep(1)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.waits_for) == ("blocked", first.pk)
    second.refresh_from_db()
    assert (second.open_run, second.waiting_run) == (waiting.pk, None)
    world.start()
    world.end(last(first))
    world.sweep(1)
    waiting.refresh_from_db()
    assert waiting.state == "queued"


@pytest.mark.any_database
def test_a_run_that_waits_for_its_predecessor_keeps_others_of_its_schedule_out() -> None:
    world = World()
    first, second = edge(overlap="skip")
    world.claim(first, second)
    world.start()
    world.end(last(first))
    world.start()
    world.end(last(second))  # from now on, the schedule names an execution that is over
    world.now += HOUR
    world.claim(first, second)
    world.now += HOUR
    world.claim(second)
    states = [state for state, *_instants in rows(second)]
    assert states == ["succeeded", "blocked", "skipped"]


@pytest.mark.any_database
def test_a_predecessor_out_of_its_bounds_is_not_waited_for() -> None:
    world = World()
    first = schedule(active_until=NOON - DAY)
    second = schedule(after=first)
    world.claim(second)
    assert last(second).state == "queued"


@pytest.mark.any_database
def test_what_is_spread_and_has_not_started_is_no_gap_and_is_not_backfilled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON - DAY)
    row = SchedulerFactory(schedule="0 12 * * *", timezone="UTC", spread_seconds=3_600)
    monkeypatch.setattr(clock, "now", lambda: NOON + 10 * MINUTE)
    waits_for_its_start(row)
    (audited,) = audit_schedules(NOON + 10 * MINUTE, NOON - HOUR, None, only=[row.pk])
    assert audited.faults == []
    assert dry_run(row, since=NOON - HOUR, days=1.1 / 24).instants == []


@pytest.mark.any_database
@pytest.mark.parametrize("on_excluded", ["skip", "hold"])
@pytest.mark.parametrize("within", [None, 60])
def test_what_was_missed_on_both_sides_of_an_exclusion_is_no_fault(
    on_excluded: str, within: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of what was missed counts 1:00, 2:00 and 5:00 to 7:00. The calendar excludes 3:00 and 4:00."""
    midnight = NOON - 12 * HOUR
    named = CalendarFactory(entries="03:00-05:00 maintenance", timezone="UTC")
    monkeypatch.setattr(clock, "now", lambda: midnight + HOUR / 2)
    row = SchedulerFactory(
        schedule="0 * * * *", timezone="UTC", calendar=named, on_excluded=on_excluded, missed_within_seconds=within
    )
    for hours in (8 + 1 / 6, 9):
        now = midnight + hours * HOUR
        monkeypatch.setattr(clock, "now", lambda now=now: now)
        claim_due(now, embedded=True)
    (audited,) = audit_schedules(midnight + 9.5 * HOUR, None, None, only=[row.pk])
    assert (audited.due, audited.faults) == (9, [])
    # A row that is lost is found as before.
    SchedulerExecution.objects.filter(scheduler=row, scheduled_at=midnight + 9 * HOUR).delete()
    (audited,) = audit_schedules(midnight + 9.5 * HOUR, None, None, only=[row.pk])
    assert [(fault.value, at) for fault, at in audited.faults] == [("gap", midnight + 9 * HOUR)]


@pytest.mark.any_database
def test_a_backfill_leaves_out_what_the_calendar_and_the_bounds_exclude() -> None:
    row = SchedulerFactory(
        schedule="0 0 * * *", timezone="UTC", calendar=CalendarFactory(entries="2026-01-07 stocktaking"),
        active_from=MONDAY + DAY,
    )  # fmt: skip
    assert dry_run(row, days=5).instants == [MONDAY + DAY, MONDAY + 3 * DAY, MONDAY + 4 * DAY]


@pytest.mark.any_database
def test_the_load_counts_a_schedule_in_the_minute_in_which_it_starts() -> None:
    site_load.forget()
    now = datetime(2026, 3, 10, 1, tzinfo=UTC)
    row = SchedulerFactory(schedule="0 3 * * *", timezone="UTC", spread_seconds=7_200)
    offset = site_load.offset_of(row.pk, row.spread_seconds, row.spread_each)
    Scheduler.objects.update(next_run_at=None)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=datetime(2026, 3, 10, 3, tzinfo=UTC) + offset)
    load = site_load.site_load(EVERYTHING, now)
    crowded = [load.at(place) for place, count in enumerate(load.counts) if count]
    assert crowded == [(datetime(2026, 3, 10, 3, tzinfo=UTC) + offset).replace(second=0)]
    site_load.forget()
