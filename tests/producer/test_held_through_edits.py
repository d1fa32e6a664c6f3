"""What a calendar holds waits on when the calendar is edited, and runs at once when it is not excluded any more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.core.skip_reasons import HELD_EDITED
from scheduling.models import Calendar, Scheduler, SchedulerExecution
from scheduling.producer.changed_calendars import sweep_calendars
from scheduling.producer.sweeps import plan_stale
from tests.factories import CalendarFactory, SchedulerFactory
from tests.producer.calendar_claims import HOUR, LUNCH, claims, hourly, planned
from tests.support import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.database]

EDITED_AT = NOON + 3.2 * HOUR
"""The runs of 14:00 and 15:00 are held."""

OTHER_LINE = "2027-03-26 Good Friday"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    row = hourly(on_excluded="hold")
    claims(NOON, 2)
    monkeypatch.setattr(clock, "now", lambda: EDITED_AT)
    return row


def edit(entries: str, *, by_sql: bool = False) -> None:
    if by_sql:
        Calendar.objects.update(entries=entries)
    else:
        named = Calendar.objects.get()
        named.entries = entries
        named.save()
    sweep_calendars(EDITED_AT)


@pytest.mark.parametrize("by_sql", [False, True])
def test_another_line_changes_nothing(held: Scheduler, by_sql: bool) -> None:
    edit(f"{LUNCH}\n{OTHER_LINE}", by_sql=by_sql)
    assert not SchedulerExecution.objects.filter(state="skipped")
    assert claims(EDITED_AT, 1) == []
    (others, run, following) = claims(NOON + 4.5 * HOUR, 1)
    assert others[:2] == ("14-0", "skipped")
    assert HELD_EDITED not in others[2]
    assert SchedulerExecution.objects.get(state="skipped").missed == 2
    assert (run[:2], following[:2]) == (("16-0", "queued"), ("17-0", "queued"))


def test_a_hold_that_the_edit_makes_longer_goes_on(held: Scheduler) -> None:
    edit("2026-03-10 14:00-18:30 lunch")
    assert claims(EDITED_AT, 3) == []
    assert [found[:2] for found in claims(NOON + 6.5 * HOUR, 0)] == [("14-0", "skipped"), ("18-0", "queued")]


def test_the_latest_run_starts_at_once_when_the_edit_ends_the_hold(held: Scheduler) -> None:
    edit(OTHER_LINE)
    found = claims(EDITED_AT, 0)
    assert found[-1][:2] == ("15-0", "queued")
    other = SchedulerExecution.objects.get(state="skipped")
    assert (other.execution_key, other.missed) == ("cron-2026-3-10-14-0", 1)
    assert "15:00" in other.reason
    assert HELD_EDITED not in other.reason
    assert [key for key, _state, _reason in claims(EDITED_AT, 1)] == ["16-0"]


def test_what_is_too_old_then_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    row = hourly("2026-03-10..2026-03-20 stocktaking", on_excluded="hold", missed_within_seconds=600)
    monkeypatch.setattr(clock, "now", lambda: EDITED_AT)
    Scheduler.objects.filter(pk=row.pk).update(schedule="0 14 * * *")
    planned(Scheduler.objects.get())
    edit(OTHER_LINE)
    assert claims(EDITED_AT, 0) == []
    found = SchedulerExecution.objects.get(scheduled_at=NOON + 2 * HOUR)
    assert found.state == "skipped"
    assert found.reason.endswith(f"{HELD_EDITED}.")


@pytest.mark.parametrize("column", ["status", "calendar"])
def test_a_pause_and_another_calendar_end_a_hold(held: Scheduler, column: str) -> None:
    row = Scheduler.objects.get()
    setattr(row, column, False if column == "status" else None)
    row.save()
    found = SchedulerExecution.objects.get(state="skipped")
    assert (found.execution_key, found.missed) == ("cron-2026-3-10-14-0", 2)
    assert found.reason.endswith(f"{HELD_EDITED}.")
    Scheduler.objects.update(status=True)
    assert not {"14-0", "15-0"} & {key for key, _state, _reason in claims(EDITED_AT, 3)}


@pytest.mark.parametrize("edited", [{}, {"missed_within_seconds": 7_200}, {"on_excluded": "skip"}])
def test_one_date_runs_once_whatever_is_edited_while_it_is_held(
    monkeypatch: pytest.MonkeyPatch, edited: dict[str, Any]
) -> None:
    now: list[datetime] = [NOON]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    named = CalendarFactory(entries=LUNCH)
    at = NOON + 2.5 * HOUR
    SchedulerFactory(schedule="", date_time=at, timezone="UTC", calendar=named, on_excluded="hold")
    sweep_calendars(NOON)
    now[0] = EDITED_AT
    if edited:
        Scheduler.objects.update(**edited)  # a form refuses a date that has passed
        plan_stale(EDITED_AT)
    else:
        edit(f"{LUNCH}\n{OTHER_LINE}")
    claims(EDITED_AT, 2)
    found = SchedulerExecution.objects.get()
    if "on_excluded" in edited:
        assert found.state == "skipped"
        assert "lunch" in found.reason
    else:
        assert (found.state, found.scheduled_at, found.assigned_at) == ("queued", at, NOON + 4.5 * HOUR)
