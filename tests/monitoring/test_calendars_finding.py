"""A calendar in use whose dates are all over is a finding."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import Group

from scheduling.models import Calendar
from scheduling.models.visibility import Visibility
from scheduling.monitoring.findings import calendars
from scheduling.monitoring.findings.present import Present
from scheduling.producer.changed_calendars import sweep_calendars
from tests.factories import CalendarFactory, GroupFactory, SchedulerFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 5, 27, 12, tzinfo=UTC)
HOLIDAYS = "every 12-25 Christmas\n2026-04-03 Good Friday\n2026-05-25 Whit Monday\nsat,sun"


def found(at: datetime = NOW, visible: Visibility | None = None) -> list[str]:
    present = Present(at) if visible is None else Present(at, visible)
    return [finding.in_full for finding in calendars.examine(present)]


def used(entries: str = HOLIDAYS, status: bool = True, group: Group | None = None) -> Calendar:
    calendar = CalendarFactory(name="Holidays", entries=entries, group=group)
    SchedulerFactory(calendar=calendar, status=status, group=group)
    return calendar


def test_the_last_date_of_a_calendar_is_named_when_it_is_over_in_each_zone() -> None:
    used()
    assert found(NOW - timedelta(days=1)) == []
    assert found() == ["Calendars whose dates are all over: 1. Holidays (the last date was 2026-05-25)."]


def test_new_dates_and_deleted_dates_end_the_finding() -> None:
    calendar = used()
    calendar.entries = HOLIDAYS + "\n2027-03-26..2027-03-29 Easter"
    calendar.save()
    assert found() == []
    assert found(datetime(2027, 4, 1, tzinfo=UTC))
    calendar.entries = "every 12-25\nsat,sun"
    calendar.save()
    assert found(datetime(2027, 4, 1, tzinfo=UTC)) == []


def test_a_calendar_that_no_active_schedule_uses_needs_no_dates() -> None:
    CalendarFactory(entries=HOLIDAYS)
    used(status=False)
    assert found() == []


def test_dates_by_plain_sql_count_after_the_sweep() -> None:
    calendar = used()
    Calendar.objects.filter(pk=calendar.pk).update(entries="2026-01-06\n2030-01-06 Epiphany")
    sweep_calendars(NOW)
    assert found() == []
    Calendar.objects.filter(pk=calendar.pk).update(entries="2026-01-06")
    sweep_calendars(NOW)
    assert found() == ["Calendars whose dates are all over: 1. Holidays (the last date was 2026-01-06)."]


def test_a_calendar_of_another_group_is_not_named() -> None:
    used(group=GroupFactory())
    assert found()
    assert found(visible=Visibility(frozenset())) == []
