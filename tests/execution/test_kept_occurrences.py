"""An occurrence that an edit has kept is on record once, whatever comes before a producer claims it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import plan_stale
from tests.factories import CalendarFactory, SchedulerFactory
from tests.support import NOON, Clock

pytestmark = [pytest.mark.django_db, pytest.mark.database]

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def each_minute(at: Clock, **columns: object) -> Scheduler:
    at(NOON + 5 * SECOND)
    row: Scheduler = SchedulerFactory(schedule="* * * * *", timezone="UTC", **columns)
    return row


def edit(row: Scheduler, **columns: object) -> None:
    """Edit the stored schedule, as the form does."""
    stored = Scheduler.objects.get(pk=row.pk)
    for name, value in columns.items():
        setattr(stored, name, value)
    stored.save()


def on_record() -> dict[str, int]:
    """How many occurrences each execution counts, by its key."""
    return {row.execution_key: max(row.missed, 1) for row in SchedulerExecution.objects.order_by("scheduled_at")}


def test_a_later_begin_and_a_pause(at: Clock) -> None:
    row = each_minute(at)
    at(NOON + 61 * SECOND)
    edit(row, active_from=NOON + 2 * MINUTE)
    edit(row, status=False)
    at(NOON + 2 * MINUTE + SECOND)
    edit(row, status=True)
    assert on_record() == {"cron-2026-3-10-12-1": 2}


def test_a_later_begin_and_a_pause_that_plain_sql_ends_with_other_times(at: Clock) -> None:
    row = each_minute(at)
    at(NOON + 61 * SECOND)
    edit(row, active_from=NOON + 30 * MINUTE)
    edit(row, status=False)
    Scheduler.objects.update(status=True, schedule="*/2 * * * *", active_from=None)
    plan_stale(at(NOON + 63 * SECOND))
    claim_due(at(NOON + 2 * MINUTE), embedded=True)
    assert on_record() == {"cron-2026-3-10-12-1": 1, "cron-2026-3-10-12-2": 1}


@pytest.mark.parametrize("by_sql", [False, True])
def test_a_date_and_a_pause(at: Clock, by_sql: bool) -> None:
    row = each_minute(at)
    at(NOON + 61 * SECOND)
    edit(row, schedule="", date_time=NOON + 30 * MINUTE)
    edit(row, status=False)
    at(NOON + 63 * SECOND)
    if by_sql:
        Scheduler.objects.update(status=True, date_time=NOON + 3 * MINUTE)
        plan_stale(NOON + 63 * SECOND)
    else:
        edit(row, status=True, date_time=NOON + 3 * MINUTE)
    claim_due(at(NOON + 64 * SECOND), embedded=True)
    claim_due(at(NOON + 3 * MINUTE), embedded=True)
    assert on_record() == {"cron-2026-3-10-12-1": 1, "date-2026-3-10-12-3": 1}


def test_a_date_that_passes_during_the_pause_is_counted_with_it(at: Clock) -> None:
    row = each_minute(at)
    at(NOON + 61 * SECOND)
    edit(row, schedule="", date_time=NOON + 3 * MINUTE)
    edit(row, status=False)
    at(NOON + 3 * MINUTE + SECOND)
    edit(row, status=True, date_time=NOON + 9 * MINUTE)
    claim_due(at(NOON + 9 * MINUTE), embedded=True)
    assert on_record() == {"cron-2026-3-10-12-1": 2, "date-2026-3-10-12-9": 1}


def test_of_two_users_the_second_one_takes_the_times_back(at: Clock) -> None:
    """The next run of the times of the first one says nothing about the times that the second one has loaded."""
    row = each_minute(at)
    mine = Scheduler.objects.get(pk=row.pk)
    at(NOON + 10 * SECOND)
    edit(row, schedule="*/2 * * * *")
    mine.missed_runs = "all"
    at(NOON + 11 * SECOND)
    mine.save()
    claim_due(at(NOON + MINUTE), embedded=True)
    assert on_record() == {"cron-2026-3-10-12-1": 1}


def test_of_two_users_the_second_one_pauses_and_takes_the_times_back(at: Clock) -> None:
    row = each_minute(at)
    mine = Scheduler.objects.get(pk=row.pk)
    at(NOON + 10 * SECOND)
    edit(row, schedule="*/7 * * * *")
    mine.status = False
    at(NOON + 9.5 * MINUTE)
    mine.save()
    at(NOON + 15 * MINUTE + SECOND)
    edit(row, status=True)
    # 12:07 by the times of the first one, and 12:10 to 12:15 by those of the second one
    assert sum(on_record().values()) == 7, on_record()


def test_of_two_users_both_make_the_same_edit(at: Clock) -> None:
    row = each_minute(at, calendar=CalendarFactory(timezone="UTC", entries="2026-03-10 12:02-12:06 lunch"))
    mine = Scheduler.objects.get(pk=row.pk)
    at(NOON + 10 * SECOND)
    edit(row, missed_runs="none")
    mine.missed_runs = "none"
    at(NOON + 5.5 * MINUTE)
    mine.save()
    claim_due(at(NOON + 5.6 * MINUTE), embedded=True)
    claim_due(at(NOON + 6 * MINUTE), embedded=True)
    assert sum(on_record().values()) == 6, on_record()


def test_what_was_due_is_on_record_if_plain_sql_makes_the_schedule_unusable(at: Clock) -> None:
    row = each_minute(at)
    at(NOON + 5 * MINUTE + SECOND)  # no producer for five minutes
    Scheduler.objects.update(spread_seconds=0)
    plan_stale(at(NOON + 5 * MINUTE + 2 * SECOND))
    row.refresh_from_db()
    assert row.plan_error
    Scheduler.objects.update(spread_seconds=None)
    plan_stale(at(NOON + 5 * MINUTE + 4 * SECOND))
    claim_due(at(NOON + 6 * MINUTE), embedded=True)
    assert sum(on_record().values()) == 6, on_record()
    assert "cron-2026-3-10-12-6" in on_record()


def test_what_a_pause_left_out_is_on_record_if_plain_sql_ends_it_with_an_unknown_zone(at: Clock) -> None:
    row = each_minute(at)
    edit(row, status=False)
    at(NOON + 5 * MINUTE + SECOND)
    Scheduler.objects.update(timezone="No/Where", status=True)
    plan_stale(at(NOON + 5 * MINUTE + 2 * SECOND))
    Scheduler.objects.update(timezone="UTC", status=False)
    plan_stale(at(NOON + 5 * MINUTE + 4 * SECOND))
    at(NOON + 10 * MINUTE + SECOND)
    edit(row, status=True)
    assert sum(on_record().values()) == 10, on_record()
