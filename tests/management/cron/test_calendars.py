"""`cron calendars`: the list, one calendar, and a calendar that cannot be used."""

from __future__ import annotations

import pytest

from scheduling.models import Calendar
from tests.factories import CalendarFactory
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db


def test_calendars_are_listed_and_shown() -> None:
    assert "There is no calendar." in cron("calendars").err
    row = CalendarFactory(name="Holidays", entries="every 12-25 Christmas\n# for the depot")
    broken = CalendarFactory()
    Calendar.objects.filter(pk=broken.pk).update(entries="nonsense", error="Line 1: it is wrong")
    found = cron("calendars", "--json").json
    assert [(one["id"], one["problem"]) for one in found["calendars"]] == [
        (row.pk, ""),
        (broken.pk, "Line 1: it is wrong"),
    ]
    assert "Holidays" in cron("calendars").out
    shown = cron("calendars", "Holidays", "--json").json["calendar"]
    assert shown["entries"] == "every 12-25 Christmas\n# for the depot"
    assert "every 12-25 Christmas\n# for the depot\n" in cron("calendars", "Holidays").out
    assert shown["exclusions"][0]["reasons"] == ["Christmas"]
    assert "12-25 00:00" in cron("calendars", str(row.pk)).out
    assert "is no entry" in cron("calendars", str(broken.pk)).out
    assert cron("calendars", "holi").code == 3
