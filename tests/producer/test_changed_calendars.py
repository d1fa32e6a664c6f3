"""Calendars of schedules: what is left out or held, edits by pages and by plain SQL, and calendars that are broken."""

from __future__ import annotations

import os
import random
from datetime import datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import ProtectedError

from scheduling.core.calendars import CalendarError
from scheduling.execution.claim import claim_due
from scheduling.execution.planning import plan_anew
from scheduling.models import Calendar, Scheduler, SchedulerExecution
from scheduling.models import plan as plan_module
from scheduling.models.calendar import CalendarState
from scheduling.models.exclusions import CalendarCache, calendar
from scheduling.models.plan import PlanState
from scheduling.producer import changed_calendars
from scheduling.producer.changed_calendars import sweep_calendars
from scheduling.producer.sweeps import plan_stale
from tests.core import brute_calendar
from tests.factories import CalendarFactory, GroupFactory, SchedulerFactory
from tests.hostile import fuzz
from tests.producer.calendar_claims import HOUR, LUNCH, MINUTE, claims, hourly, planned
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_failures() -> None:
    changed_calendars._failed.clear()


@pytest.mark.parametrize("on_excluded", ["skip", "hold"])
def test_an_edit_without_a_producer_leaves_each_instant_on_record_once(on_excluded: str) -> None:
    row = hourly(on_excluded=on_excluded)  # 13:00 is due, and 14:00 to 16:00 are excluded after it
    Scheduler.objects.update(missed_within_seconds=80_000)
    plan_anew([row.pk], NOON + 3.2 * HOUR)
    for hours in (4.2, 4.5, 5):
        claim_due(NOON + hours * HOUR, embedded=True)
    found = SchedulerExecution.objects.order_by("scheduled_at").values_list("scheduled_at", "state", "missed")
    hours_of = [(at.hour, state, missed) for at, state, missed in found]
    if on_excluded == "skip":
        assert hours_of == [(13, "queued", 0), (14, "skipped", 2), (16, "skipped", 1), (17, "queued", 0)]
    else:
        assert hours_of == [(13, "queued", 0), (14, "skipped", 2), (16, "queued", 0), (17, "queued", 0)]


def test_what_a_calendar_excludes_is_left_out_with_its_reason() -> None:
    row = hourly()
    assert row.next_run_at == NOON + HOUR
    first, excluded, last = claims(NOON, 5)
    assert (first[:2], last[:2]) == (("13-0", "queued"), ("17-0", "queued"))
    assert excluded == (
        "14-0", "skipped",
        "Excluded 3 occurrences from 2026-03-10 14:00 to 2026-03-10 16:00 UTC: lunch (calendar “Kitchen”).",
    )  # fmt: skip


def test_what_a_calendar_holds_runs_once_when_it_ends() -> None:
    hourly(on_excluded="hold")
    assert [found[:2] for found in claims(NOON, 4.4)] == [("13-0", "queued")]
    # At half past four, the latest of the three runs, and one row says what became of the others.
    held = claims(NOON + 4.5 * HOUR, 0.2)
    assert sorted(found[:2] for found in held) == [("14-0", "skipped"), ("16-0", "queued")]
    assert "lunch (calendar “Kitchen”)" in next(reason for _key, state, reason in held if state == "skipped")
    assert [found[:2] for found in claims(NOON + 4.8 * HOUR, 0.4)] == [("17-0", "queued")]


def test_nothing_starts_in_a_window_that_was_added_a_moment_ago() -> None:
    """No sweep has passed since, so the schedule is planned for an instant that is now excluded."""
    row = hourly()
    named = row.calendar
    assert named is not None
    named.entries = "2026-03-10 13:00-15:30 stocktaking"
    named.save()
    row.refresh_from_db()
    assert row.next_run_at == NOON + HOUR
    found = claims(NOON, 4)
    wanted = [("13-0", "skipped"), ("14-0", "skipped"), ("16-0", "queued")]
    assert [(key, state) for key, state, _reason in found] == wanted
    assert all("stocktaking" in reason for _key, state, reason in found if state == "skipped")


@pytest.mark.parametrize("by_sql", [False, True])
def test_an_edit_plans_the_schedules_of_the_calendar_anew(by_sql: bool) -> None:
    row, other = hourly("2026-03-10 12:30-18:30"), SchedulerFactory(schedule="0 * * * *")
    assert row.next_run_at == NOON + 7 * HOUR
    named = Calendar.objects.get()
    former = named.version
    if by_sql:
        Calendar.objects.update(entries="2026-03-10 12:30-13:30")
        assert Calendar.objects.get().state == CalendarState.CHANGED
    else:
        named.entries = "2026-03-10 12:30-13:30"
        named.save()
        assert Calendar.objects.get().state == CalendarState.SPREADING
    assert sweep_calendars(NOON) == 1
    row.refresh_from_db()
    named = Calendar.objects.get()
    assert (named.state, named.version, named.planned_entries) == (0, former + 1, "2026-03-10 12:30-13:30")
    assert (row.next_run_at, row.planned_calendar_version) == (NOON + 2 * HOUR, named.version)
    assert sweep_calendars(NOON) == 0
    assert Scheduler.objects.get(pk=other.pk).planned_calendar_version == 0


def test_what_has_fallen_due_before_an_edit_is_recorded_by_the_former_entries() -> None:
    row = hourly("2026-03-10 12:30-18:30 inventory")
    Calendar.objects.update(entries="")
    assert claims(NOON + 2.1 * HOUR, 0) == []  # not due yet by the plan
    sweep_calendars(NOON + 2.2 * HOUR)
    row.refresh_from_db()
    assert row.next_run_at == NOON + 3 * HOUR
    found = SchedulerExecution.objects.get()
    assert (found.state, found.missed) == ("skipped", 2)
    assert "inventory" in found.reason


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"entries": "sat\nnonsense"}, "The calendar “Kitchen” cannot be used: Line 2: “nonsense” is no entry."),
        ({"timezone": "Nowhere/Atlantis"}, "The calendar “Kitchen” cannot be used: Zone: 'Nowhere/Atlantis' is not"),
    ],
)
@pytest.mark.parametrize("swept", [False, True])
def test_a_broken_calendar_sets_its_schedules_aside_and_the_others_go_on(
    columns: dict[str, str], said: str, swept: bool
) -> None:
    row = hourly()
    other = planned(SchedulerFactory(schedule="0 * * * *", timezone="UTC"))
    Calendar.objects.update(**columns)
    if swept:
        sweep_calendars(NOON)
    done = claim_due(NOON + HOUR, embedded=True)
    assert [execution.scheduler_id for execution in done.claimed] == [other.pk]
    row.refresh_from_db()
    assert (row.plan_state, row.next_run_at) == (PlanState.SET_ASIDE, None)
    assert row.plan_error.startswith(said)
    sweep_calendars(NOON)
    named = Calendar.objects.get()
    assert named.state == CalendarState.CURRENT
    assert named.error.startswith(said.partition("used: ")[2])
    assert sweep_calendars(NOON) == 0, "it is not tried again before something changes"
    with pytest.raises(ValidationError, match="cannot be used"):
        Scheduler.objects.get(pk=row.pk).save()
    Scheduler.objects.get(pk=row.pk).description  # noqa: B018 - it can be read
    named.entries, named.timezone = LUNCH, ""
    named.save()
    assert sweep_calendars(NOON + HOUR) == 1
    row.refresh_from_db()
    assert (row.plan_error, row.next_run_at) == ("", NOON + 5 * HOUR)
    assert Calendar.objects.get().error == ""


HOURS = int(os.environ.get("TEST_CALENDAR_HOURS", "24"))
"""How many hours are simulated. 1,000 are the full volume."""


def edited(pick: random.Random, row: Calendar) -> list[brute_calendar.Line]:
    """Give a calendar random entries, as a page or plain SQL does. Return them."""
    lines = brute_calendar.random_lines(pick, NOON.date(), HOURS // 24 + 2)
    text = "\n".join(line.text for line in lines)
    if pick.random() < 0.5:
        Calendar.objects.filter(pk=row.pk).update(entries=text)
    else:
        stored = Calendar.objects.get(pk=row.pk)
        stored.entries = text
        stored.save()
    return lines


def test_each_hour_runs_or_is_left_out_once_through_random_edits() -> None:
    """At each hour, the calendar of this hour decides, as the simple implementation reads it. What is left out is
    counted once."""
    pick = fuzz.generator("calendars")
    zones = [pick.choice(["UTC", "Europe/Madrid", "America/New_York", "Australia/Lord_Howe"]) for _ in range(4)]
    lines: list[list[brute_calendar.Line]] = [[] for _ in zones]
    named = [CalendarFactory(timezone=tz, entries="") for tz in zones]
    rows = [planned(SchedulerFactory(schedule="0 * * * *", timezone="UTC", calendar=one)) for one in named]
    runs: list[list[datetime]] = [[] for _ in zones]
    for number in range(1, HOURS + 1):
        hour, is_last = NOON + number * HOUR, number == HOURS
        for place, row in enumerate(named):
            if is_last:  # an hour that is not excluded puts the last ones on record
                Calendar.objects.filter(pk=row.pk).update(entries="")
                lines[place] = []
            elif pick.random() < 0.15:
                lines[place] = edited(pick, row)
        sweep_calendars(hour - 30 * MINUTE)
        claim_due(hour, embedded=True)
        for place, tz in enumerate(zones):
            ((_instant, is_excluded),) = brute_calendar.excluded(lines[place], tz, hour, hour + MINUTE)
            runs[place] += [] if is_excluded else [hour]
    for schedule, wanted in zip(rows, runs, strict=True):
        made = SchedulerExecution.objects.filter(scheduler=schedule)
        started = made.filter(state="queued").order_by("scheduled_at").values_list("scheduled_at", flat=True)
        left_out = made.filter(state="skipped")
        assert list(started) == wanted, fuzz.choose_seed()
        assert sum(row.missed for row in left_out) == HOURS - len(wanted), fuzz.choose_seed()
        assert all(row.reason.startswith("Excluded") for row in left_out)


def test_a_schedule_whose_calendar_was_changed_by_plain_sql_is_planned_anew() -> None:
    row = hourly()
    other = CalendarFactory(entries="2026-03-10 12:00-14:30")
    Scheduler.objects.filter(pk=row.pk).update(calendar=other)
    row.refresh_from_db()
    assert row.plan_state == PlanState.STALE
    plan_stale(NOON)
    row.refresh_from_db()
    assert (row.plan_state, row.next_run_at) == (PlanState.CURRENT, NOON + 3 * HOUR)
    Scheduler.objects.filter(pk=row.pk).update(calendar=None)
    plan_stale(NOON)
    row.refresh_from_db()
    assert (row.plan_state, row.next_run_at, row.planned_calendar_version) == (PlanState.CURRENT, NOON + HOUR, 0)


def test_a_sweep_whose_time_is_over_leaves_the_rest_of_its_batch_to_the_next_one() -> None:
    """The thread of the sweep also claims what is due."""
    first = hourly()
    for _ in range(3):
        SchedulerFactory(schedule="0 * * * *", calendar=first.calendar)
    Calendar.objects.update(entries="sat")
    assert [sweep_calendars(NOON, seconds=0) for _ in range(5)] == [1, 1, 1, 1, 0]
    assert Calendar.objects.get().state == CalendarState.CURRENT


def test_the_schedules_of_a_calendar_are_planned_in_batches() -> None:
    first = hourly()
    rows = [first, *(SchedulerFactory(schedule="0 * * * *", calendar=first.calendar) for _ in range(4))]
    Calendar.objects.update(entries="sat")
    assert [sweep_calendars(NOON, batch=2) for _ in range(2)] == [5, 0]
    assert Calendar.objects.get().state == CalendarState.CURRENT
    assert {row.planned_calendar_version for row in Scheduler.objects.filter(pk__in=[row.pk for row in rows])} == {
        Calendar.objects.get().version
    }


def test_a_schedule_that_was_saved_by_an_earlier_version_is_found(
    monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    """The calendar changes after the save has read its version, and before the save is committed."""
    named = CalendarFactory()
    sweep_calendars(NOON)
    monkeypatch.setattr(plan_module, "version_of", lambda _pk: named.version - 1)
    with django_capture_on_commit_callbacks(execute=True):
        row = SchedulerFactory(calendar=named)
    monkeypatch.undo()
    assert Calendar.objects.get().state == CalendarState.SPREADING
    assert sweep_calendars(NOON) == 1
    row.refresh_from_db()
    assert row.planned_calendar_version == Calendar.objects.get().version


def test_a_save_does_not_undo_what_a_sweep_has_noted() -> None:
    named = CalendarFactory()
    stale = Calendar.objects.get()
    sweep_calendars(NOON)
    stale.description = "new"
    stale.save()
    named.refresh_from_db()
    assert (named.state, named.planned_version, named.description) == (0, named.version, "new")


def test_a_calendar_in_use_cannot_be_deleted() -> None:
    row = hourly()
    with pytest.raises(ProtectedError):
        Calendar.objects.all().delete()
    row.delete()
    Calendar.objects.all().delete()


def test_a_schedule_names_only_calendars_that_its_users_see() -> None:
    team = GroupFactory()
    named = CalendarFactory(group=team)
    with pytest.raises(ValidationError, match="belongs to a group"):
        SchedulerFactory(calendar=named)
    SchedulerFactory(calendar=named, group=team)
    shared = CalendarFactory()
    SchedulerFactory(calendar=shared)
    shared.group = team
    with pytest.raises(ValidationError, match="would not see it any more"):
        shared.save()


def test_a_calendar_that_does_not_exist_is_no_free_pass() -> None:
    with pytest.raises(CalendarError, match="does not exist"):
        calendar(10**9)(NOON)


def test_a_process_keeps_the_newest_version_of_few_calendars() -> None:
    small = CalendarCache(most=5)
    entries = calendar(CalendarFactory(entries="sat\nsun").pk).usable()
    for pk in range(4):
        small.put((pk, "UTC", 1), entries)
    assert [small.get((pk, "UTC", 1)) is not None for pk in range(4)] == [False, False, False, True]
    small.put((3, "UTC", 2), entries)
    assert small.get((3, "UTC", 1)) is None


def test_an_edit_that_is_rolled_back_leaves_nothing_behind() -> None:
    """The edit after it gets the same version."""
    named = CalendarFactory(entries="sat")
    with transaction.atomic():
        named.entries = "2026-03-10"
        named.save(update_fields=["entries"])
        assert calendar(named.pk)(NOON) is not None
        transaction.set_rollback(True)
    row = Calendar.objects.get(pk=named.pk)
    row.entries = "2026-03-11"
    row.save(update_fields=["entries"])
    assert row.version == named.version
    assert calendar(row.pk)(NOON) is None


def test_a_claim_reads_the_entries_only_once(django_assert_num_queries: Any) -> None:
    named = CalendarFactory(entries="sat")
    sweep_calendars(NOON)
    calendar(named.pk)
    with django_assert_num_queries(1):
        calendar(named.pk)
