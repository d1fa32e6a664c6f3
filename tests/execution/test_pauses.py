"""A pause leaves one skipped row when it ends, however it began and ended, and never two."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count

import pytest
from django.utils import timezone as clock

from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import plan_stale
from tests.factories import CalendarFactory, SchedulerFactory, due
from tests.support import NOON, Clock, at_once

pytestmark = pytest.mark.django_db


def paused(
    at: Clock, since: datetime = NOON, by: str = "anna", why: str = "storage full", **columns: object
) -> Scheduler:
    """Return a schedule that is paused at an instant."""
    at(since - timedelta(days=1))
    row: Scheduler = SchedulerFactory(**{"schedule": "*/10 * * * *", **columns})
    at(since)
    row = due(row, since + timedelta(minutes=10))
    row.status, row.paused_by, row.pause_reason = False, by, why
    row.save(update_fields=["status", "pause_reason"])
    row.refresh_from_db()
    return row


def resume(row: Scheduler) -> None:
    row.status = True
    row.save(update_fields=["status"])


def sql(row: Scheduler, **columns: object) -> None:
    """Change a row as plain SQL does, and let a producer plan it."""
    Scheduler.objects.filter(pk=row.pk).update(**columns)
    plan_stale(clock.now())


def left_out() -> list[tuple[str, int, str]]:
    rows = SchedulerExecution.objects.filter(state="skipped").order_by("pk")
    return [(row.execution_key, row.missed, row.reason) for row in rows]


def test_a_pause_leaves_one_row_that_says_who_when_and_why(at: Clock) -> None:
    row = paused(at, timezone="Europe/Berlin")
    assert (row.paused_at, row.paused_by) == (NOON, "anna")
    at(NOON + timedelta(minutes=55))
    resume(row)
    said = "Paused by anna from 2026-03-10 13:00 to 13:55 CET: storage full. 5 occurrences did not run."
    assert left_out() == [("cron-2026-3-10-12-10", 5, said)]
    row.refresh_from_db()
    assert (row.paused_at, row.paused_by, row.pause_reason) == (None, "", "")
    assert row.next_run_at == NOON + timedelta(hours=1)


def test_a_pause_in_which_nothing_fell_due_leaves_no_row(at: Clock) -> None:
    row = paused(at)
    at(NOON + timedelta(minutes=9))
    resume(row)
    assert left_out() == []


def test_a_schedule_that_was_never_active_has_no_pause(at: Clock) -> None:
    at(NOON)
    row = SchedulerFactory(schedule="* * * * *", off=True)
    at(NOON + timedelta(days=1))
    resume(row)
    assert left_out() == []


def test_a_pause_of_years_is_counted_quickly(at: Clock) -> None:
    row = paused(at, datetime(1999, 1, 1, tzinfo=NOON.tzinfo), schedule="* * * * *", timezone="Europe/Berlin")
    at(NOON)
    resume(row)
    assert [missed for _key, missed, _said in left_out()] == [
        int((NOON - datetime(1999, 1, 1, tzinfo=NOON.tzinfo)).total_seconds()) // 60
    ]


def test_a_pause_and_a_resume_by_plain_sql_leave_one_row(at: Clock) -> None:
    at(NOON)
    row = SchedulerFactory(schedule="*/10 * * * *")
    sql(row, status=False, pause_reason="by hand")
    at(NOON + timedelta(minutes=35))
    sql(row, status=True)
    assert left_out() == [
        ("cron-2026-3-10-12-10", 3, "Paused from 2026-03-10 12:00 to 12:35 UTC: by hand. 3 occurrences did not run.")
    ]
    row.refresh_from_db()
    assert (row.pause_reason, row.paused_at, row.next_run_at) == ("", None, NOON + timedelta(minutes=40))


@pytest.mark.parametrize("claimed_first", [True, False])
def test_no_occurrence_is_lost_between_plain_sql_and_the_sweep(at: Clock, claimed_first: bool) -> None:
    at(NOON - timedelta(minutes=1))
    row = due(SchedulerFactory(schedule="* * * * *"), NOON)
    Scheduler.objects.filter(pk=row.pk).update(status=False)
    if claimed_first:
        claim_due(NOON, embedded=True)
        plan_stale(at(NOON + timedelta(minutes=3)))
    else:
        plan_stale(at(NOON + timedelta(minutes=3)))
        claim_due(clock.now(), embedded=True)
    at(NOON + timedelta(minutes=5))
    sql(row, status=True)
    assert [(key, missed) for key, missed, _said in left_out()] == [
        ("cron-2026-3-10-12-0", 0),
        ("cron-2026-3-10-12-1", 5),
    ]


def test_a_schedule_that_sql_pauses_and_resumes_between_two_sweeps_is_planned_again(at: Clock) -> None:
    at(NOON - timedelta(minutes=1))
    row = due(SchedulerFactory(schedule="* * * * *"), NOON)
    Scheduler.objects.filter(pk=row.pk).update(status=False)
    claim_due(at(NOON), embedded=True)
    sql(row, status=True)
    row.refresh_from_db()
    assert row.next_run_at == NOON + timedelta(minutes=1)


def test_an_occurrence_that_was_due_before_the_pause_is_counted_once(at: Clock) -> None:
    at(NOON - timedelta(minutes=1))
    row = due(SchedulerFactory(schedule="* * * * *"), NOON)
    at(NOON + timedelta(seconds=30))
    row.status = False
    row.save()
    row.refresh_from_db()
    assert row.next_run_at == NOON  # no producer is running
    at(NOON + timedelta(minutes=5, seconds=30))
    resume(row)
    claim_due(at(NOON + timedelta(minutes=6)), embedded=True)
    found = SchedulerExecution.objects.order_by("pk").values_list("execution_key", "state", "missed")
    assert list(found) == [("cron-2026-3-10-12-0", "skipped", 6), ("cron-2026-3-10-12-6", "queued", 0)]


@pytest.mark.parametrize("claimed", [False, True])
def test_what_a_calendar_excludes_after_a_due_occurrence_is_counted_once(at: Clock, claimed: bool) -> None:
    calendar = CalendarFactory(name=f"stocktaking {claimed}", entries="2026-03-10 12:05-13:00 stocktaking")
    at(NOON - timedelta(days=1))
    row = due(SchedulerFactory(schedule="*/10 * * * *", timezone="UTC", calendar=calendar), NOON)
    at(NOON + timedelta(minutes=25))  # no producer has claimed the occurrence of 12:00
    row.status = False
    row.save()
    if claimed:
        claim_due(at(NOON + timedelta(minutes=35)), embedded=True)
    at(NOON + timedelta(minutes=45))
    row.refresh_from_db()
    resume(row)
    rows = [(key, missed) for key, missed, _reason in left_out()]
    one_by_one = [("cron-2026-3-10-12-0", 0), ("cron-2026-3-10-12-10", 4)]
    assert rows == (one_by_one if claimed else [("cron-2026-3-10-12-0", 5)])


def test_an_edit_during_a_pause_counts_what_was_due_before_it(at: Clock) -> None:
    row = paused(at)
    Scheduler.objects.update(next_run_at=NOON - timedelta(minutes=10), planned_at=None)  # no producer has claimed it
    row.refresh_from_db()
    at(NOON + timedelta(minutes=15))
    row.schedule = "5 * * * *"
    row.save()
    at(NOON + timedelta(hours=3))
    resume(row)
    assert [(key, missed) for key, missed, _reason in left_out()] == [
        ("cron-2026-3-10-11-50", 3), ("cron-2026-3-10-13-5", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("active", [True, False])
def test_an_instant_that_falls_due_while_the_form_is_saved_is_counted_once(
    monkeypatch: pytest.MonkeyPatch, at: Clock, active: bool
) -> None:
    since, ten = NOON - timedelta(minutes=5), NOON + timedelta(minutes=10)
    row = paused(at, since)
    # Each look at the clock is a microsecond later than the one before. The instant falls due between two of them.
    for before in range(12):
        Scheduler.objects.filter(pk=row.pk).update(
            status=not active, planned_status=not active, paused_at=since if active else None, pause_recorded_to=None,
            next_run_at=None if active else NOON, next_nominal_at=None,
        )  # fmt: skip
        SchedulerExecution.objects.all().delete()
        row.refresh_from_db()
        ticks = count(-before)
        monkeypatch.setattr(clock, "now", lambda ticks=ticks: ten + next(ticks) * timedelta(microseconds=1))
        row.status = active
        row.save()
        claim_due(at(ten + timedelta(minutes=1)), embedded=True)
        if not active:
            at(ten + timedelta(minutes=2))
            row.refresh_from_db()
            resume(row)
        found = SchedulerExecution.objects.filter(scheduled_at__lte=ten).values_list("missed", flat=True)
        assert sum(max(missed, 1) for missed in found) == 2, before


def test_an_edit_of_the_times_during_a_pause_counts_the_former_times(at: Clock) -> None:
    row = paused(at)
    at(NOON + timedelta(minutes=25))
    row.schedule = "0 * * * *"
    row.save()
    row.refresh_from_db()
    assert row.paused_at == NOON
    at(NOON + timedelta(hours=3, minutes=30))
    resume(row)
    assert [(key, missed) for key, missed, _said in left_out()] == [
        ("cron-2026-3-10-12-10", 2),
        ("cron-2026-3-10-13-0", 3),
    ]


def test_a_resume_with_new_times_counts_the_former_times(at: Clock) -> None:
    row = paused(at)
    at(NOON + timedelta(minutes=30))
    row.status, row.schedule = True, "* * * * *"
    row.save()
    assert [(key, missed) for key, missed, _said in left_out()] == [("cron-2026-3-10-12-10", 3)]


def test_a_second_pause_keeps_the_beginning_of_the_first(at: Clock) -> None:
    at(NOON - timedelta(days=1))
    row = SchedulerFactory(schedule="*/10 * * * *")
    second = Scheduler.objects.get(pk=row.pk)
    at(NOON)
    row.status, row.paused_by = False, "anna"
    row.save()
    at(NOON + timedelta(hours=1))
    second.status, second.paused_by = False, "bert"
    second.save()
    row.refresh_from_db()
    assert (row.paused_at, row.paused_by) == (NOON, "anna")


def test_a_date_that_passed_during_a_pause_is_left_out_if_it_is_replaced(at: Clock) -> None:
    at(NOON - timedelta(days=1))
    row = SchedulerFactory(schedule="", date_time=NOON)
    row.status = False
    row.save()
    at(NOON + timedelta(hours=1))
    row.refresh_from_db()
    row.status, row.date_time = True, NOON + timedelta(days=1)
    row.save()
    assert [(key, missed) for key, missed, _said in left_out()] == [("date-2026-3-10-12-0", 1)]


def test_a_date_that_plain_sql_resumes_runs_once(at: Clock) -> None:
    at(NOON - timedelta(days=1))
    row = SchedulerFactory(schedule="", date_time=NOON)
    row.status = False
    row.save()
    at(NOON + timedelta(hours=1))
    sql(row, status=True)
    claim_due(clock.now(), embedded=True)
    found = SchedulerExecution.objects.values_list("execution_key", "state")
    assert list(found) == [("date-2026-3-10-12-0", "queued")]


def test_a_one_time_schedule_that_has_run_is_not_paused(at: Clock) -> None:
    at(NOON - timedelta(days=1))
    row = SchedulerFactory(schedule="", date_time=NOON)
    claim_due(at(NOON), embedded=True)
    row.refresh_from_db()
    assert (row.status, row.paused_at) == (False, None)


def test_values_of_a_pause_that_plain_sql_wrote_do_not_stop_a_resume(at: Clock) -> None:
    row = paused(at)
    Scheduler.objects.filter(pk=row.pk).update(planned_schedule="nonsense", paused_at=NOON.replace(year=1))
    at(NOON + timedelta(hours=1))
    sql(row, status=True)
    row.refresh_from_db()
    assert row.next_run_at == NOON + timedelta(hours=1, minutes=10)


@pytest.mark.django_db(transaction=True)
def test_four_users_who_resume_at_once_leave_one_row() -> None:
    now = clock.now()
    row = SchedulerFactory(schedule="* * * * *")
    row.status = False
    row.save()
    Scheduler.objects.filter(pk=row.pk).update(paused_at=now - timedelta(hours=1), planned_at=None)
    copies = [Scheduler.objects.get(pk=row.pk) for _ in range(4)]
    at_once([lambda copy=copy: resume(copy) for copy in copies])
    assert len(left_out()) == 1
    row.refresh_from_db()
    assert (row.status, row.paused_at) == (True, None)
    assert row.next_run_at is not None
