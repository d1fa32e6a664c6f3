"""The panel "What changes" of the schedule's form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.models import Calendar
from scheduling.operations import site_load as looks
from tests.admin.conftest import logged_in
from tests.factories import CalendarFactory, GroupFactory, SchedulerFactory, UserFactory
from tests.support import NOON, Clock

pytestmark = pytest.mark.django_db
REMOVED = "\N{MINUS SIGN} removed"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def fresh_look() -> Iterator[None]:
    looks.forget()
    yield
    looks.forget()


def panel(client: Client, pk: int, **typed: Any) -> BeautifulSoup:
    response = client.get(reverse("admin:scheduling_scheduler_changes", args=[pk]), typed)
    assert (response.status_code, response.headers["X-Part"]) == (200, "changes")
    return BeautifulSoup(response.content, "html.parser")


def test_changed_added_and_removed_runs_are_told_by_a_word_and_a_sign(editor: Client) -> None:
    row = SchedulerFactory(schedule="0 8 * * *", timezone="UTC")
    found = panel(editor, row.pk, schedule="0 8 * * 1-5", timezone="UTC")
    marks = {cell.get_text(" ", strip=True) for cell in found.select("td.sch-run-mark")}
    assert REMOVED in marks
    assert "are removed" in found.get_text() or "is removed" in found.get_text()
    words = {
        cell.get_text(" ", strip=True) for cell in panel(editor, row.pk, schedule="5 8 * * *").select(".sch-run-mark")
    }
    assert words == {"~ changed"}
    assert "stay as they are" in panel(editor, row.pk, schedule="0 8 * * *", timezone="UTC").get_text()
    paused = panel(editor, row.pk, schedule="0 8 * * *", timezone="UTC", paused="on")
    assert {cell.get_text(" ", strip=True) for cell in paused.select(".sch-run-mark")} == {REMOVED}


def test_unchanged_values_leave_what_waits_as_it_is(editor: Client, at: Clock) -> None:
    at(NOON + 3 * DAY)  # a Friday
    weekend = CalendarFactory(entries="sat,sun", timezone="UTC")
    held = SchedulerFactory(schedule="0 8 * * *", timezone="UTC", calendar=weekend, on_excluded="hold")
    at(NOON + 5 * DAY)
    typed = {"schedule": "0 8 * * *", "timezone": "UTC", "calendar": weekend.pk, "on_excluded": "hold"}
    assert "stay as they are" in panel(editor, held.pk, **typed).get_text()
    # An edit of the rules ends the hold, and another time of the edit is no start that the clocks have moved.
    text = panel(editor, held.pk, **typed, missed_runs="none").get_text(" ")
    assert "Of the next runs, 1 is removed." in text
    assert "Mon 2026-03-16" in text
    assert "clocks" not in text
    runs = editor.get(reverse("admin:scheduling_scheduler_preview", args=["runs"]), {**typed, "previewed": held.pk})
    assert "held: " in runs.content.decode()
    assert "clocks" not in runs.content.decode()
    # The user does not see the calendar. It stays.
    member = UserFactory(permissions=["scheduling.view_scheduler", "scheduling.change_scheduler"])
    member.groups.add(group := GroupFactory())
    held.group = group
    held.save()
    Calendar.objects.update(group=GroupFactory())
    assert "stay as they are" in panel(logged_in(member), held.pk, **typed).get_text()


def test_a_spread_run_that_waits_stays_as_it_is(editor: Client, at: Clock) -> None:
    at(NOON - HOUR)
    row = SchedulerFactory(schedule="0 12 * * *", timezone="UTC", spread_seconds=86_400)
    while looks.offset_of(row.pk, 86_400, False) < 2 * HOUR:
        row.delete()
        row = SchedulerFactory(schedule="0 12 * * *", timezone="UTC", spread_seconds=86_400)
    at(NOON + HOUR)
    typed = {"schedule": "0 12 * * *", "timezone": "UTC", "spread_seconds": "1d"}
    assert "stay as they are" in panel(editor, row.pk, **typed).get_text()
    assert "clocks" not in panel(editor, row.pk, **{**typed, "schedule": "0 11 * * *"}).get_text()


def test_a_clock_change_is_marked(editor: Client) -> None:
    row = SchedulerFactory(schedule="30 2 29 3 *", timezone="Europe/Madrid")
    text = panel(editor, row.pk, schedule="30 2 25-31 3 0", timezone="Europe/Madrid").get_text(" ")
    assert "right after the hour that the clocks skip" in text


def test_the_crowded_minute_and_emptier_ones_are_shown(editor: Client) -> None:
    hour = (clock.now().hour + 12) % 24  # far from both ends of the next 24 hours
    for _number in range(6):
        SchedulerFactory(schedule=f"0 {hour} * * *", timezone="UTC")
    text = panel(editor, 0, schedule=f"0 {hour} * * *", timezone="UTC").get_text(" ")
    assert f"{hour:02}:00 UTC, 7 schedules start; without the edit, 6." in text
    emptier = re.search(r"Emptier minutes near it, with their starts: ([^.]+)", text)
    assert emptier is not None
    assert f"{hour:02}:01 (0)" in emptier[1]
    assert "(this schedule)" in text


@pytest.mark.parametrize(
    "typed",
    [
        {},
        {"schedule": "61 * * * *"},
        {"schedule": "\x00"},
        {"schedule": "* " * 5_000},
        {"schedule": "0 8 * * *", "timezone": "../x"},
        {"schedule": "0 0 31 2 *"},
        {"date_time_0": "2999-01-01", "date_time_1": "12:00"},
        {"date_time_0": "9999-12-31", "date_time_1": "23:59:59", "timezone": "America/New_York"},
        {"schedule": "0 8 * * *", "date_time_0": "2026-01-01", "date_time_1": "12:00"},
    ],
)
def test_hostile_values_give_a_panel(editor: Client, typed: dict[str, str]) -> None:
    row = SchedulerFactory()
    for pk in (0, row.pk):
        assert panel(editor, pk, **typed).select(".sch-panel")


def test_the_panel_is_on_the_form_of_those_who_may_save_it(editor: Client, viewer: Client) -> None:
    row = SchedulerFactory()
    address = reverse("admin:scheduling_scheduler_changes", args=[row.pk])
    assert address in editor.get(reverse("admin:scheduling_scheduler_edit", args=[row.pk])).content.decode()
    new = reverse("admin:scheduling_scheduler_changes", args=[0])
    assert new in editor.get(reverse("admin:scheduling_scheduler_add")).content.decode()
    assert address not in viewer.get(reverse("admin:scheduling_scheduler_edit", args=[row.pk])).content.decode()
    assert viewer.get(address).status_code == 403


def test_a_schedule_of_another_group_is_not_found() -> None:
    row = SchedulerFactory(group=GroupFactory())
    client = logged_in(UserFactory(permissions=["scheduling.view_scheduler", "scheduling.change_scheduler"]))
    assert client.get(reverse("admin:scheduling_scheduler_changes", args=[row.pk])).status_code == 302
