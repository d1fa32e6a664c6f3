"""The pages of calendars: the check of the entries, the preview, what uses it, groups, and the schedule's page."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.models import Calendar, Scheduler
from scheduling.producer.changed_calendars import sweep_calendars
from tests.admin.audit import entry_line
from tests.admin.conftest import logged_in
from tests.admin.scheduler_form import ADD as ADD_SCHEDULE
from tests.admin.scheduler_form import form as posted
from tests.factories import CalendarFactory, GroupFactory, PauseFactory, SchedulerFactory, UserFactory, WorkerFactory

pytestmark = pytest.mark.django_db

LIST, ADD = "/admin/scheduling/calendar/", "/admin/scheduling/calendar/add/"
CHECK = "/admin/scheduling/calendar/check/"


def change(row: Calendar) -> str:
    return reverse("admin:scheduling_calendar_change", args=[row.pk])


def overview(row: Scheduler) -> str:
    return reverse("admin:scheduling_scheduler_change", args=[row.pk])


def fields(**given: Any) -> dict[str, Any]:
    return {"name": "Holidays", "description": "", "timezone": "Europe/Berlin", "entries": "", "group": "", **given}


def errors(response: Any) -> str:
    lists = BeautifulSoup(response.content, "html.parser").select(".errorlist")
    return " ".join(found.get_text(" ", strip=True) for found in lists)


def text(response: Any) -> str:
    return " ".join(BeautifulSoup(response.content, "html.parser").get_text(" ").split())


def test_a_calendar_is_made_and_changed_and_the_history_has_the_lines(editor: Client) -> None:
    assert editor.post(ADD, fields(entries="every 12-25 Christmas\r\nsat,sun")).status_code == 302
    row = Calendar.objects.get()
    assert (row.entries, row.version) == ("every 12-25 Christmas\nsat,sun", 1)
    assert editor.post(change(row), fields(entries="sat,sun\nevery 12-26")).status_code == 302
    assert Calendar.objects.get().version == 2
    lines = [entry_line(entry) for entry in LogEntry.objects.order_by("pk")]
    assert "entries: (empty) -> every 12-25 Christmas; sat,sun" in lines[0]
    assert lines[1] == "entries: every 12-25 Christmas -> every 12-26"
    many = "\n".join(f"2027-01-{day:02} off work on this day" for day in range(1, 29))
    editor.post(change(row), fields(entries=many))
    assert "more" in entry_line(LogEntry.objects.order_by("-pk")[0])


def test_wrong_lines_are_named_at_the_field(editor: Client) -> None:
    response = editor.post(ADD, fields(entries="sat\n25.12.2026\n22:00", timezone="Europe/Berlni"))
    assert "Line 2: “25.12.2026” is no entry" in errors(response)
    assert "Line 3: “22:00” is no entry" in errors(response)
    assert "did you mean 'Europe/Berlin'?" in errors(response)
    assert not Calendar.objects.exists()


def test_the_check_says_what_is_wrong_or_what_is_excluded(editor: Client) -> None:
    wrong = editor.post(CHECK, {"entries": "sat\nnonsense", "timezone": "UTC"})
    assert wrong["X-Part"] == "excluded"
    assert "Line 2: “nonsense” is no entry" in text(wrong)
    assert "is no IANA time zone" in text(editor.post(CHECK, {"entries": "sat", "timezone": "x" * 500}))
    good = editor.post(CHECK, {"entries": "every 12-25 Christmas", "timezone": "UTC"})
    assert "1 entry." in text(good)
    assert "Christmas" in text(good)
    assert len(BeautifulSoup(good.content, "html.parser").select("table.sch-month")) == 12
    assert "It has no entries" in text(editor.post(CHECK, {"entries": "", "timezone": ""}))
    assert "checked when you save" in text(editor.post(CHECK, {"entries": "#" * 200_001, "timezone": ""}))
    assert "excludes everything" in text(editor.post(CHECK, {"entries": "00:00-24:00", "timezone": ""}))
    assert editor.get(CHECK).status_code == 405
    assert not Calendar.objects.exists()


def test_the_sheets_mark_days_that_are_excluded_whole_or_in_part(editor: Client) -> None:
    page = editor.post(CHECK, {"entries": "every 12-25 Christmas\nevery 12-24 14:00-24:00 eve", "timezone": "UTC"})
    soup = BeautifulSoup(page.content, "html.parser")
    whole, part = (soup.select(f"table .sch-day-{kind}") for kind in ("all", "part"))
    assert [(day.get_text(), day["title"]) for day in whole] == [("25", "Christmas")]
    assert [(day.get_text(), day["title"]) for day in part] == [("24", "eve")]


def test_a_calendar_in_use_names_its_schedules_and_stays(editor: Client) -> None:
    row = CalendarFactory()
    for number in range(25):
        SchedulerFactory(calendar=row, description=f"Letters {number}")
    page = text(editor.get(change(row)))
    assert "Letters 0" in page
    assert "Letters 24" not in page
    assert "There are more." in page
    delete = reverse("admin:scheduling_calendar_delete", args=[row.pk])
    for response in (editor.get(delete), editor.post(delete, {"post": "yes"})):
        assert "The schedule “Letters 3” uses it. Choose another calendar for this schedule first." in text(response)
    action = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    assert "The schedule “Letters 3” uses it." in text(editor.post(LIST, action))
    Scheduler.objects.filter(calendar=row).delete()
    assert editor.post(delete, {"post": "yes"}).status_code == 302
    assert not Calendar.objects.exists()


def test_users_of_a_group_change_only_its_calendars() -> None:
    team: Group = GroupFactory()
    allowed = [
        f"scheduling.{verb}_{model}" for model in ("calendar", "scheduler") for verb in ("view", "add", "change")
    ]
    user = UserFactory(permissions=allowed)
    user.groups.add(team)
    client = logged_in(user)
    own, shared, hidden = CalendarFactory(group=team), CalendarFactory(), CalendarFactory(group=GroupFactory())
    listed = text(client.get(LIST))
    assert [row.name in listed for row in (own, shared, hidden)] == [True, True, False]
    assert client.get(change(hidden)).status_code == 302
    assert client.post(change(shared), fields(name="Mine")).status_code == 403
    assert client.post(change(own), fields(name="Mine", group=team.pk, entries="sat")).status_code == 302
    assert "required" in errors(client.post(ADD, fields()))
    form = text(client.get(ADD_SCHEDULE))
    assert [name in form for name in ("Mine", shared.name, hidden.name)] == [True, True, False]
    refused = client.post(ADD_SCHEDULE, posted(calendar=hidden.pk))
    assert "Select a valid choice" in errors(refused)


def test_the_page_of_a_schedule_says_what_is_left_out(editor: Client) -> None:
    """The form takes the calendar and what to do, and the page says it in words, with the next excluded runs."""
    named = CalendarFactory(name="Holidays DE", timezone="Europe/Berlin")
    data = posted(calendar=named.pk, on_excluded="hold", timezone="Europe/Berlin", worker=WorkerFactory().pk)
    assert editor.post(ADD_SCHEDULE, data).status_code == 302
    row = Scheduler.objects.get()
    assert (row.calendar, row.on_excluded) == (named, "hold")
    page = text(editor.get(overview(row)))
    assert "Held at the times of the calendar “Holidays DE”, and run once when they end." in page
    Scheduler.objects.get().save()
    Scheduler.objects.update(on_excluded="skip")
    page = text(editor.get(overview(row)))
    assert "Left out at the times of the calendar “Holidays DE”." in page
    assert "12-25 08:00 CET, Christmas." in page
    assert page.count("is left out") == 10


def test_a_freeze_is_listed_as_an_exclusion(editor: Client) -> None:
    row = SchedulerFactory()
    PauseFactory(scope="site", type="", name="", reason="The warehouse moves", ends_at=clock.now() + timedelta(days=3))
    page = text(editor.get(overview(row)))
    assert "The warehouse moves" in page
    assert page.count("waits until") == 3
    row = SchedulerFactory(calendar=CalendarFactory(entries="00:00-24:00 always"))
    page = text(editor.get(overview(row)))
    assert page.count("is left out") == 20, "the calendar decides first"


def test_a_broken_calendar_is_told_on_each_page(editor: Client) -> None:
    named = CalendarFactory(name="Holidays")
    row = SchedulerFactory(calendar=named)
    Calendar.objects.update(entries="nonsense")
    sweep_calendars(clock.now())
    assert "It cannot be used. The schedules that name it do not run: Line 1" in text(editor.get(change(named)))
    assert "cannot be used" in text(editor.get(LIST))
    assert "The calendar “Holidays” cannot be used: Line 1" in text(editor.get(overview(row)))
    assert "Holidays (cannot be used)" in text(editor.get(reverse("admin:scheduling_scheduler_edit", args=[row.pk])))


def test_the_preview_shows_no_calendar_of_another_group() -> None:
    team: Group = GroupFactory()
    user = UserFactory(permissions=["scheduling.view_scheduler", "scheduling.add_scheduler"])
    user.groups.add(team)
    client = logged_in(user)
    own, hidden = (CalendarFactory(group=group, entries="00:00-24:00 why") for group in (team, GroupFactory()))
    preview = reverse("admin:scheduling_scheduler_preview", args=["runs"])
    for row, is_shown in ((own, True), (hidden, False)):
        page = text(client.get(preview, {"schedule": "0 8 * * *", "calendar": row.pk}))
        assert ("why" in page) == is_shown
