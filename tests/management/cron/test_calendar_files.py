"""Calendars in schedule files: an export writes those that schedules name, and an apply makes and changes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from scheduling.models import Calendar, Scheduler, ScheduleRevision
from scheduling.models.exclusions import cache
from scheduling.operations import calendar_files
from tests.factories import CalendarFactory, GroupFactory, SchedulerFactory, UserFactory, WorkerFactory
from tests.management.cron.calls import Ended, cron

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

FILE = "shop.json"
A = {"name": "a", "schedule": "0 0 1 1 *", "worker": "tests.noop", "calendar": "Holidays DE"}
HOLIDAYS = {"name": "Holidays DE", "timezone": "Europe/Berlin", "entries": ["every 12-25 Christmas", "sun closed"]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    WorkerFactory(name="tests.noop")
    UserFactory(username="root", superuser=True)
    monkeypatch.setenv("CRON_AS", "root")
    monkeypatch.chdir(tmp_path)


def apply(calendars: Any, *options: str, schedules: Any = (A,)) -> Ended:
    Path(FILE).write_text(json.dumps({"version": 1, "calendars": calendars, "schedules": list(schedules)}))
    return cron("apply", FILE, *options)


def test_a_file_makes_a_calendar_and_the_schedule_that_names_it_at_once() -> None:
    shown = apply([HOLIDAYS], "--dry-run")
    assert shown.code == 0
    assert "+ make calendar “Holidays DE”\n    name: Holidays DE\n    timezone: Europe/Berlin\n" in shown.out
    assert "calendar: Holidays DE" in shown.out.partition("+ make a")[2]
    assert "Calendars to make or change: 1." in shown.out
    assert (Calendar.objects.count(), Scheduler.objects.count()) == (0, 0)
    assert apply([HOLIDAYS], "--reason", "The  shop\nopens").code == 0
    row = Calendar.objects.get()
    assert (row.timezone, row.entries) == ("Europe/Berlin", "every 12-25 Christmas\nsun closed")
    assert Scheduler.objects.get(name="a").calendar == row
    assert ScheduleRevision.objects.get(schedule=Scheduler.objects.get(name="a").pk).reason == "The shop opens"
    assert apply([HOLIDAYS], "--check").code == 0
    entry = LogEntry.objects.get(object_id=str(row.pk), content_type__model="calendar")
    assert "schedule file shop.json" in entry.change_message


def test_what_was_edited_in_the_admin_is_a_difference_and_is_written_again() -> None:
    apply([HOLIDAYS])
    row = Calendar.objects.get()
    row.entries, row.description = "sat,sun closed", "edited"
    row.save()
    found = apply([HOLIDAYS], "--check", "--json")
    assert found.code == 1
    (step,) = found.json["calendars"]
    assert (step["act"], step["id"], found.json["drift"], found.json["steps"]) == ("change", row.pk, True, [])
    assert [edit["name"] for edit in step["edits"]] == ["description", "entries"]
    assert apply([HOLIDAYS]).code == 0
    row.refresh_from_db()
    assert (row.description, row.entries, row.version) == ("", "every 12-25 Christmas\nsun closed", 3)
    assert apply([], "--prune", schedules=[{**A, "calendar": None}]).code == 0
    assert Calendar.objects.count() == 1  # no file owns a calendar


def test_an_export_holds_the_calendars_of_its_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    CalendarFactory(name="Not named")
    group = GroupFactory(name="depot")
    own = CalendarFactory(name="Depot", group=group, entries="sat\n\n# a comment\nsun closed")
    SchedulerFactory(name="a", calendar=own, group=group)
    SchedulerFactory(name="b", calendar=own, group=group)
    assert cron("export", FILE).code == 0
    held = json.loads(Path(FILE).read_text())
    lines = ["sat", "", "# a comment", "sun closed"]
    assert held["calendars"] == [{"name": "Depot", "timezone": "UTC", "group": "depot", "entries": lines}]
    assert cron("apply", FILE, "--check").code == 1  # the schedules are not owned by the file yet
    Scheduler.objects.all().delete()
    Calendar.objects.all().delete()
    assert cron("apply", FILE).code == 0
    assert Calendar.objects.get().entries == own.entries
    assert cron("apply", FILE, "--check").code == 0
    monkeypatch.setattr(calendar_files, "LONGEST_EXPORTED", 5)
    monkeypatch.setattr("scheduling.operations.schedule_export.LONGEST_EXPORTED", 5)
    long = cron("export", FILE, "--force")
    assert (long.code, "calendars" in json.loads(Path(FILE).read_text())) == (0, False)
    assert "The calendar “Depot” is left out, because it is too long." in long.err


@pytest.mark.parametrize(
    ("calendars", "words"),
    [
        ({}, "“calendars” is a list"),
        (["x"], "Calendar 1: it is no object with a “name”"),
        ([HOLIDAYS, HOLIDAYS], "Calendar 2: the name “Holidays DE” stands there twice."),
        ([{**HOLIDAYS, "entries": "25.12. Christmas"}], "calendar Holidays DE.entries"),
        ([{**HOLIDAYS, "entries": ["sat\nsun"]}], "Each line of the list is one entry."),
        ([{**HOLIDAYS, "timezone": "Berlin"}], "calendar Holidays DE.timezone"),
        ([{**HOLIDAYS, "colour": "red"}], "calendar Holidays DE.colour"),
        ([{**HOLIDAYS, "group": "nowhere"}], "calendar Holidays DE.group"),
        ([{"name": "Another"}], "There is no calendar with this name."),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_changed(calendars: Any, words: str) -> None:
    found = apply(calendars)
    assert found.code == 4
    assert words in found.err
    assert (Calendar.objects.count(), Scheduler.objects.count()) == (0, 0)


def test_a_schedule_that_cannot_be_made_takes_its_calendar_back() -> None:
    GroupFactory(name="depot")
    found = apply([{**HOLIDAYS, "group": "depot"}])  # only schedules of the group may name it
    assert found.code == 4
    assert "Only schedules of the same group can name it." in found.err
    assert (Calendar.objects.count(), Scheduler.objects.count()) == (0, 0)


def test_users_who_may_not_change_calendars_apply_only_files_that_change_none() -> None:
    apply([HOLIDAYS])
    may = [f"scheduling.{verb}_scheduler" for verb in ("view", "add", "change")]
    UserFactory(username="deploy", permissions=[*may, "scheduling.view_calendar"])
    assert apply([HOLIDAYS], "--as", "deploy").code == 0
    found = apply([{**HOLIDAYS, "description": "other"}], "--as", "deploy")
    assert found.code == 4
    assert Calendar.objects.get().description == ""
