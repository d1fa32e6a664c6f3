"""A process plans a schedule with a clock that is behind: what another process has put on record stays as it is.

A producer reads its clock before it waits for a row, and the clocks of two hosts differ.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from scheduling.execution import planning
from scheduling.execution.claim import claim_due
from scheduling.execution.edited_plan import as_saved
from scheduling.execution.rule_pauses import pause_failing
from scheduling.models import Calendar, Scheduler, SchedulerExecution
from scheduling.models.decided import MOST_BEHIND
from scheduling.producer.changed_calendars import sweep_calendars
from scheduling.producer.sweeps import plan_stale
from tests.factories import CalendarFactory, SchedulerExecutionFactory, SchedulerFactory
from tests.support import NOON, Clock

pytestmark = [pytest.mark.django_db, pytest.mark.database]

MINUTE = timedelta(minutes=1)
BEHIND = timedelta(seconds=1)


def paused(at: Clock, **columns: object) -> Scheduler:
    """A schedule of each minute that is paused at noon, after its occurrence of noon."""
    at(NOON - MINUTE / 2)
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC", **columns)
    claim_due(at(NOON), embedded=True)
    at(NOON + BEHIND)
    row.status = False
    row.save()
    return row


def resume(row: Scheduler) -> None:
    row.status = True
    row.save()


def on_record() -> list[tuple[str, str, int]]:
    rows = SchedulerExecution.objects.order_by("scheduled_at", "pk")
    return [(row.execution_key, row.state, row.missed) for row in rows]


AFTER_PAUSE = [
    ("cron-2026-3-10-12-0", "queued", 0),
    ("cron-2026-3-10-12-1", "skipped", 3),
    ("cron-2026-3-10-12-4", "queued", 0),
]


def test_plain_sql_edits_a_schedule_that_was_just_resumed(at: Clock) -> None:
    row = paused(at)
    at(NOON + 3 * MINUTE + BEHIND / 2)
    resume(row)
    Scheduler.objects.filter(pk=row.pk).update(missed_runs="all")
    plan_stale(NOON + 3 * MINUTE - BEHIND / 2)
    claim_due(at(NOON + 3 * MINUTE + BEHIND), embedded=True)
    claim_due(at(NOON + 4 * MINUTE), embedded=True)
    assert on_record() == AFTER_PAUSE


@pytest.mark.parametrize("spread", [None, 1])
def test_the_calendar_of_a_schedule_changes_that_was_just_resumed(at: Clock, spread: int | None) -> None:
    row = paused(at, calendar=CalendarFactory(timezone="UTC", entries=""), spread_seconds=spread)
    Calendar.objects.update(entries="2026-04-01 holiday")
    at(NOON + 3 * MINUTE + BEHIND / 2)
    resume(row)
    sweep_calendars(NOON + 3 * MINUTE - BEHIND / 2)
    claim_due(at(NOON + 3 * MINUTE + BEHIND), embedded=True)
    claim_due(at(NOON + 4 * MINUTE), embedded=True)
    assert on_record() == AFTER_PAUSE


def test_a_paused_schedule_is_planned_twice(at: Clock) -> None:
    row = paused(at, calendar=CalendarFactory(timezone="UTC", entries=""))
    for number, moment in enumerate([NOON + 3 * MINUTE + BEHIND / 2, NOON + 3 * MINUTE - BEHIND / 2]):
        Calendar.objects.update(entries=f"2026-04-0{number + 1} holiday")
        sweep_calendars(moment)
    at(NOON + 3 * MINUTE + BEHIND)
    resume(Scheduler.objects.get(pk=row.pk))
    claim_due(at(NOON + 4 * MINUTE), embedded=True)
    assert on_record() == AFTER_PAUSE


def test_the_form_saves_with_a_clock_that_is_behind(at: Clock) -> None:
    row = paused(at)
    Scheduler.objects.filter(pk=row.pk).update(status=True)
    plan_stale(at(NOON + 3 * MINUTE + BEHIND / 2))
    row = Scheduler.objects.get(pk=row.pk)
    row.missed_runs = "all"
    at(NOON + 3 * MINUTE - BEHIND / 2)
    row.save()
    claim_due(at(NOON + 3 * MINUTE + BEHIND), embedded=True)
    claim_due(at(NOON + 4 * MINUTE), embedded=True)
    assert on_record() == AFTER_PAUSE


def test_the_preview_tells_what_the_form_saves(at: Clock) -> None:
    row = paused(at)
    at(NOON + 3 * MINUTE + BEHIND / 2)
    resume(row)
    row = Scheduler.objects.get(pk=row.pk)
    stored, row.missed_runs = Scheduler.objects.get(pk=row.pk), "all"
    assert as_saved(stored, row, at(NOON + 3 * MINUTE - BEHIND / 2)).next_run_at == NOON + 4 * MINUTE


def test_an_occurrence_that_an_edit_has_kept_is_counted_by_the_pause_that_follows(at: Clock) -> None:
    at(NOON - MINUTE / 2)
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC")
    at(NOON)
    row.spread_seconds = 30
    row.save()
    Scheduler.objects.filter(pk=row.pk).update(status=False)
    plan_stale(NOON - BEHIND / 2)
    at(NOON + MINUTE + BEHIND)
    resume(Scheduler.objects.get(pk=row.pk))
    assert on_record() == [("cron-2026-3-10-12-0", "skipped", 2)]


def test_an_edit_has_recorded_what_a_calendar_excluded(at: Clock) -> None:
    named = CalendarFactory(timezone="UTC", entries="2026-03-10 12:01-12:06 lunch")
    at(NOON + BEHIND)
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC", calendar=named)
    row.missed_runs = "none"
    at(NOON + 3 * MINUTE + BEHIND / 2)
    row.save()
    assert on_record() == [("cron-2026-3-10-12-1", "skipped", 3)]
    Scheduler.objects.filter(pk=row.pk).update(missed_runs="latest")
    plan_stale(NOON + 3 * MINUTE - BEHIND / 2)
    claim_due(at(NOON + 6 * MINUTE), embedded=True)
    assert on_record() == [
        ("cron-2026-3-10-12-1", "skipped", 3),
        ("cron-2026-3-10-12-4", "skipped", 2),
        ("cron-2026-3-10-12-6", "queued", 0),
    ]


def test_new_times_begin_at_once(at: Clock) -> None:
    """What the former times have put on record ends at their last occurrence, not at their next one."""
    at(NOON + BEHIND)
    row: Scheduler = SchedulerFactory(schedule="0 0 * * *", timezone="UTC")
    Scheduler.objects.filter(pk=row.pk).update(schedule="* * * * *")
    plan_stale(NOON + 2 * BEHIND)
    row.refresh_from_db()
    assert row.next_run_at == NOON + MINUTE


def test_new_bounds_lose_nothing(at: Clock) -> None:
    """An instant before the former bound was no occurrence, so it is not on record."""
    at(NOON + BEHIND)
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC", active_from=NOON + 1.5 * MINUTE)
    assert row.next_run_at == NOON + 2 * MINUTE
    Scheduler.objects.filter(pk=row.pk).update(active_from=None)
    plan_stale(NOON + 2 * BEHIND)
    row.refresh_from_db()
    assert row.next_run_at == NOON + MINUTE


@pytest.mark.parametrize("column", ["paused_at", "pause_recorded_to"])
def test_an_instant_that_lies_too_far_ahead_is_not_believed(at: Clock, column: str) -> None:
    """Plain SQL has written it, or a clock was wrong."""
    row = paused(at)
    Scheduler.objects.filter(pk=row.pk).update(status=True, **{column: NOON + MOST_BEHIND + 3 * MINUTE})
    plan_stale(at(NOON + 2 * MINUTE + BEHIND))
    row.refresh_from_db()
    assert row.next_run_at == NOON + 3 * MINUTE


def test_a_plan_of_a_clock_that_was_years_ahead_is_not_believed(at: Clock) -> None:
    at(NOON + timedelta(days=4_000))
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC")
    Scheduler.objects.filter(pk=row.pk).update(schedule="*/2 * * * *")
    plan_stale(at(NOON + BEHIND))
    row.refresh_from_db()
    assert row.next_run_at == NOON + 2 * MINUTE


def test_a_rule_pauses_a_schedule_whose_last_instants_are_on_record(at: Clock) -> None:
    named = CalendarFactory(timezone="UTC", entries="2026-03-10 12:01-12:05 lunch")
    at(NOON + BEHIND)
    row: Scheduler = SchedulerFactory(
        schedule="* * * * *", timezone="UTC", calendar=named, pause_after_failures=1
    )  # fmt: skip
    Calendar.objects.update(entries="2026-03-10 12:01-12:06 lunch")
    sweep_calendars(at(NOON + 3 * MINUTE + BEHIND / 2))
    failed = NOON + 3 * MINUTE - BEHIND / 2
    SchedulerExecutionFactory(scheduler=row, execution_key="manual", state="failed", finished_at=failed)
    assert pause_failing([row.pk], failed) == 1
    at(NOON + 5 * MINUTE + BEHIND)
    resume(Scheduler.objects.get(pk=row.pk))
    counted = [(key, missed) for key, _state, missed in on_record() if key != "manual"]
    assert counted == [("cron-2026-3-10-12-1", 3), ("cron-2026-3-10-12-4", 2)]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata"])
def test_the_zone_of_the_settings_has_changed(at: Clock, settings: Any, zone: str) -> None:
    """The plan is still that of the former zone, so its former times are not known."""
    settings.CRON_TIMEZONE = "UTC"
    local = (NOON + MINUTE / 2).astimezone(ZoneInfo(zone))
    at(NOON - MINUTE)
    row: Scheduler = SchedulerFactory(schedule=f"{local.minute + 1} {local.hour} * * *", timezone="")
    settings.CRON_TIMEZONE = zone
    Scheduler.objects.filter(pk=row.pk).update(missed_runs="all")
    plan_stale(at(NOON + MINUTE / 2))
    row.refresh_from_db()
    assert row.next_run_at == NOON + MINUTE


@pytest.mark.parametrize("by_form", [False, True])
def test_the_end_of_a_schedule_is_taken_away_that_has_no_next_run(at: Clock, by_form: bool) -> None:
    row = paused(at, active_until=NOON + 3 * MINUTE)
    at(NOON + 3 * MINUTE + BEHIND / 2)
    resume(row)
    row = Scheduler.objects.get(pk=row.pk)
    at(NOON + 3 * MINUTE - BEHIND / 2)
    if by_form:
        row.active_until = None
        row.save()
    else:
        Scheduler.objects.filter(pk=row.pk).update(active_until=None)
        plan_stale(NOON + 3 * MINUTE - BEHIND / 2)
    claim_due(at(NOON + 3 * MINUTE + BEHIND), embedded=True)
    claim_due(at(NOON + 4 * MINUTE), embedded=True)
    assert on_record() == AFTER_PAUSE


def test_the_last_run_before_the_end_hides_nothing_that_follows(at: Clock) -> None:
    """The key of a run that has run is on record, so a row that begins with it would be refused."""
    at(NOON + 2.5 * MINUTE)
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC", active_until=NOON + 3 * MINUTE)
    claim_due(at(NOON + 3 * MINUTE), embedded=True)
    Scheduler.objects.filter(pk=row.pk).update(active_until=None)
    plan_stale(NOON + 3 * MINUTE - BEHIND / 2)
    claim_due(at(NOON + 7 * MINUTE), embedded=True)
    assert on_record() == [
        ("cron-2026-3-10-12-3", "queued", 0),
        ("cron-2026-3-10-12-4", "skipped", 3),
        ("cron-2026-3-10-12-7", "queued", 0),
    ]


def test_new_times_begin_no_earlier_because_of_a_later_edit(at: Clock) -> None:
    at(NOON - MINUTE)
    row: Scheduler = SchedulerFactory(schedule="0 * * * *", timezone="UTC")
    at(NOON + 3 * MINUTE + BEHIND / 2)  # no producer has claimed the run of noon, so the edit keeps it
    row.schedule = "* * * * *"
    row.save()
    at(NOON + 3 * MINUTE - BEHIND / 2)
    row = Scheduler.objects.get(pk=row.pk)
    row.missed_runs = "all"
    row.save()
    claim_due(at(NOON + 4 * MINUTE), embedded=True)
    assert [key for key, _state, _missed in on_record()] == ["cron-2026-3-10-12-0", "cron-2026-3-10-12-4"]


def test_the_edit_of_a_host_that_is_ahead_delays_no_new_times(at: Clock) -> None:
    """Nothing was due by the former times, so nothing of the new ones is decided."""
    at(NOON - 5 * MINUTE)
    row: Scheduler = SchedulerFactory(schedule="0 0 * * *", timezone="UTC")
    at(NOON + 75 * BEHIND)
    row.missed_runs = "all"
    row.save()
    at(NOON + 30 * BEHIND)
    row = Scheduler.objects.get(pk=row.pk)
    row.schedule = "* * * * *"
    row.save()
    assert row.next_run_at == NOON + MINUTE


@pytest.mark.parametrize("sweep", ["schedules", "calendars"])
def test_an_occurrence_falls_due_while_a_sweep_waits_for_its_lock(
    at: Clock, monkeypatch: pytest.MonkeyPatch, sweep: str
) -> None:
    at(NOON + BEHIND)
    row: Scheduler = SchedulerFactory(
        schedule="* * * * *", timezone="UTC", calendar=CalendarFactory(timezone="UTC", entries="")
    )  # fmt: skip
    Scheduler.objects.filter(pk=row.pk).update(schedule="*/7 * * * *")  # at 12:01:00.5, while the sweep waits
    waited = iter([0.0] * (1 if sweep == "schedules" else 2))
    monkeypatch.setattr(planning.time, "monotonic", lambda: next(waited, 4.0))
    if sweep == "schedules":
        plan_stale(NOON + MINUTE - BEHIND)
    else:
        Calendar.objects.update(entries="2026-04-01 holiday")
        sweep_calendars(NOON + MINUTE - BEHIND, seconds=60)
    claim_due(at(NOON + MINUTE + 4 * BEHIND), embedded=True)
    assert [key for key, _state, _missed in on_record()] == ["cron-2026-3-10-12-1"]
