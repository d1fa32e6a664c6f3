"""Producers claim the occurrences of intervals (`@every`), and of seconds only where the setting allows them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import override_settings

from scheduling.api import schedule
from scheduling.core.cron import CronError
from scheduling.execution.claim import claim_due
from scheduling.execution.mending import Mending
from scheduling.execution.planning import plan_anew
from scheduling.execution.skip_due import skip_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.timetable import is_asked_by_second, timetable_of
from scheduling.testing import travel
from tests.factories import SchedulerFactory, due
from tests.support import NOON, at_once

pytestmark = pytest.mark.django_db

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
COUNTED = "@every 90m from 2026-01-05T00:00Z"


@pytest.fixture(autouse=True)
def at_noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def seconds() -> Iterator[None]:
    with override_settings(CRON_SECONDS=True):
        yield


def sql(pk: int, **columns: str) -> None:
    """Write as an operator does in an SQL client."""
    with connection.cursor() as cursor:
        for name, value in columns.items():
            cursor.execute(f"UPDATE {Scheduler._meta.db_table} SET {name} = %s WHERE id = %s", [value, pk])


def keys() -> list[str]:
    return list(SchedulerExecution.objects.order_by("pk").values_list("execution_key", flat=True))


def test_an_interval_is_claimed_at_its_instants() -> None:
    row = SchedulerFactory(schedule=COUNTED)
    assert row.next_run_at == datetime(2026, 3, 10, 13, 30, tzinfo=UTC)
    assert claim_due(row.next_run_at - SECOND, embedded=True).claimed == []
    done = claim_due(row.next_run_at + 5 * SECOND, embedded=True)
    assert [one.execution_key for one in done.claimed] == ["cron-2026-3-10-13-30"]
    row.refresh_from_db()
    # The late claim has moved nothing: the next one is counted from the beginning, not from the last run.
    assert row.next_run_at == datetime(2026, 3, 10, 15, 0, tzinfo=UTC)


def test_missed_occurrences_run_once_and_are_counted() -> None:
    due(SchedulerFactory(schedule=COUNTED), NOON)
    done = claim_due(NOON + timedelta(hours=6, minutes=10), embedded=True)
    assert [one.execution_key for one in done.claimed] == ["cron-2026-3-10-18-0"]
    missed = SchedulerExecution.objects.get(state="skipped")
    assert (missed.missed, missed.scheduled_at, missed.execution_key) == (4, NOON, "cron-2026-3-10-12-0")


def test_days_are_local_days() -> None:
    with travel("2026-03-28 00:00", tz="Europe/Madrid") as clock:
        SchedulerFactory(schedule="@every 1d at 02:30", timezone="Europe/Madrid")
        SchedulerFactory(schedule="@every 2w on sun at 02:30 from 2026-03-23", timezone="Europe/Madrid")
        found = clock.forward(days=4)
    assert [f"{run.scheduled_at:%d %H:%M}" for run in found] == [
        "28 01:30", "29 01:00", "29 01:00", "30 00:30", "31 00:30",
    ]  # fmt: skip


@pytest.mark.usefixtures("seconds")
def test_a_schedule_of_seconds_ticks_at_its_second() -> None:
    row = SchedulerFactory(schedule="@every 10s from 2026-01-05T00:00:03Z")
    assert row.next_run_at == NOON + 3 * SECOND
    for number in range(3):
        instant = NOON + (3 + 10 * number) * SECOND
        assert claim_due(instant - SECOND, embedded=True).claimed == []
        (one,) = claim_due(instant, embedded=True).claimed
        assert one.scheduled_at == instant
    assert keys() == ["cron-2026-3-10-12-0-3", "cron-2026-3-10-12-0-13", "cron-2026-3-10-12-0-23"]


@pytest.mark.usefixtures("seconds")
def test_a_simulated_clock_runs_each_second_that_is_due() -> None:
    with travel("2026-03-10T12:00:00Z") as clock:
        SchedulerFactory(schedule="@every 20s", timezone="UTC")
        found = clock.forward(minutes=1)
    assert [run.scheduled_at - NOON for run in found] == [20 * SECOND, 40 * SECOND, 60 * SECOND]


@pytest.mark.usefixtures("seconds")
def test_an_edit_at_a_second_that_is_due_keeps_the_occurrence() -> None:
    """Plain SQL changes a schedule that is due at 12:00:20, which is an instant of its new times, too."""
    row = due(SchedulerFactory(schedule="@every 10s"), NOON + 20 * SECOND)
    sql(row.pk, schedule="@every 20s")
    now = NOON + 25 * SECOND
    assert plan_anew([row.pk], now) == 1
    row.refresh_from_db()
    assert row.next_run_at == NOON + 20 * SECOND
    sql(row.pk, schedule="@every 15s")
    assert plan_anew([row.pk], now) == 1
    row.refresh_from_db()
    assert row.next_run_at == NOON + 30 * SECOND


def test_seconds_are_refused_without_the_setting() -> None:
    for text in ("@every 10s", "@every 1m from 2026-01-05T00:00:30Z"):
        with pytest.raises(ValidationError, match="counts seconds, which this site does not allow"):
            SchedulerFactory(schedule=text)
        with pytest.raises(ValueError, match="CRON_SECONDS"):
            schedule("often", text, "tests.noop")
        with pytest.raises(CronError, match="CRON_SECONDS"):
            timetable_of(text)
    assert [is_asked_by_second(text) for text in ("@every 10s", COUNTED, "* * * * *", "nonsense", "")] == [
        True, False, False, False, False,
    ]  # fmt: skip
    with pytest.raises(ValidationError, match="seconds and years are not supported"):
        SchedulerFactory(schedule="*/10 * * * * *")


def test_seconds_that_plain_sql_stored_are_set_aside_with_a_sentence() -> None:
    bad, good = SchedulerFactory(schedule=COUNTED), due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    sql(bad.pk, schedule="@every 10s")
    assert plan_anew([bad.pk], NOON) == 0
    bad.refresh_from_db()
    assert bad.next_run_at is None
    assert bad.plan_error.startswith("'@every 10s' counts seconds, which this site does not allow; write whole minutes")
    assert len(claim_due(NOON, embedded=True).claimed) == 1
    good.refresh_from_db()
    assert good.plan_error == ""
    with override_settings(CRON_SECONDS=True):  # it goes on without a save
        assert Mending().turn(NOON) == 1
        bad.refresh_from_db()
        assert bad.next_run_at == NOON + 10 * SECOND


def test_seconds_that_were_planned_while_the_setting_was_on() -> None:
    """A producer sets the schedule aside at its next occurrence. What fell due before is counted."""
    with override_settings(CRON_SECONDS=True):
        row = due(SchedulerFactory(schedule="@every 10s"), NOON)
        paused = SchedulerFactory(schedule="@every 20s", status=False)
    done = claim_due(NOON, embedded=True)
    assert (done.claimed, done.broken) == ([], 1)
    row.refresh_from_db()
    assert "CRON_SECONDS" in row.plan_error
    row.schedule = "@every 1m"
    row.save()
    assert row.next_run_at == NOON + MINUTE
    Scheduler.objects.filter(pk=paused.pk).update(paused_at=NOON - 2 * MINUTE, planned_at=None)
    paused.refresh_from_db()
    paused.schedule, paused.status = "0 13 * * *", True
    paused.save()
    left_out = SchedulerExecution.objects.get(scheduler=paused)
    assert (left_out.missed, left_out.execution_key) == (6, "cron-2026-3-10-11-58-20")


def test_what_fell_due_is_skipped_when_a_copy_is_confirmed() -> None:
    due(SchedulerFactory(schedule=COUNTED), NOON)
    assert skip_due(NOON + timedelta(hours=2), "the database was confirmed", NOON + timedelta(hours=2)) == 1
    assert keys() == ["cron-2026-3-10-12-0"]


@pytest.mark.django_db(transaction=True)
def test_two_producers_claim_each_occurrence_of_an_interval_once() -> None:
    rows = [SchedulerFactory(schedule=COUNTED) for _ in range(8)]
    Scheduler.objects.filter(pk__in=[row.pk for row in rows]).update(next_run_at=NOON)

    def produce() -> int:
        return sum(len(claim_due(NOON, embedded=True, limit=3).claimed) for _ in range(6))

    assert sum(at_once([produce] * 2)) == 8
    assert keys() == ["cron-2026-3-10-12-0"] * 8


def test_values_that_no_interval_has_are_refused_at_the_field() -> None:
    for text, said in (
        ("@every 0m", "the shortest is"), ("@every 62135596801s", "longer than ten years"),
        ("@every 1d12h", "not mixed"), ("@every 2d at 25:00", "no time of the day"),
        ("@every 6h on fri", "only weeks have weekdays"),
        ("@every 2d from 2026-02-30", "there is no date"), ("@every 2d from 2099-01-01", "never fires again"),
    ):  # fmt: skip
        with pytest.raises(ValidationError, match=said) as caught:
            SchedulerFactory(schedule=text)
        assert set(caught.value.message_dict) == {"schedule"}
