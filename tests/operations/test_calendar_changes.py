"""Calendars are made, changed and deleted by clients, under the rules of the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from scheduling.models import Calendar
from scheduling.models.exclusions import cache
from scheduling.operations.audit import read
from tests.factories import CalendarFactory, GroupFactory, SchedulerFactory, UserFactory
from tests.http.client import ApiClient

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

MAY = [f"scheduling.{verb}_calendar" for verb in ("view", "add", "change", "delete")]


@pytest.fixture(autouse=True)
def fresh_cache() -> None:
    """Ids may come again after a test is rolled back."""
    cache.clear()


@pytest.fixture
def boss() -> ApiClient:
    return ApiClient(UserFactory(username="boss", superuser=True))


def test_a_calendar_is_made_changed_and_deleted_with_its_versions(boss: ApiClient) -> None:
    values = {"name": "Holidays DE", "timezone": "Europe/Berlin", "entries": "every 12-25 Christmas\r\nsun closed"}
    made = boss.post("calendars", values)
    assert made.status_code == 201
    body = made.json()
    assert made["Location"].endswith(f"/calendars/{body['id']}")
    assert body["entries"] == "every 12-25 Christmas\nsun closed"
    assert (made["ETag"], body["exclusions"][0]["reasons"]) == (f'"{body["version"]}"', ["closed"])
    row = Calendar.objects.get()
    planned = SchedulerFactory(calendar=row)
    path, match = f"calendars/{row.pk}", {"If_Match": made["ETag"]}
    changed = boss.send("PATCH", path, {"entries": "sat,sun closed"}, **match)
    assert (changed.status_code, changed.json()["name"]) == (200, "Holidays DE")
    row.refresh_from_db()
    assert (row.version, row.timezone) == (2, "Europe/Berlin")  # the sweep plans its schedules by the new version
    old = boss.send("PATCH", path, {"entries": ""}, **match)
    assert (old.status_code, old.json()["code"], old.json()["current"]["entries"]) == (412, "CHANGED", "sat,sun closed")
    used = boss.send("DELETE", path)
    assert (used.status_code, used.json()["code"]) == (409, "CONFLICT")
    assert "Schedules name this calendar" in used.json()["detail"]
    planned.delete()
    assert boss.send("DELETE", path, If_Match=changed["ETag"]).status_code == 204
    assert not Calendar.objects.exists()
    last = [read(entry) for entry in LogEntry.objects.filter(object_id=str(row.pk)).order_by("pk")]
    assert [edit.name for edit in last[0][1]] == ["name", "timezone", "entries"]
    assert [(edit.name, edit.old, edit.new) for edit in last[1][1]] == [
        ("entries", "every 12-25 Christmas; sun closed", "sat,sun closed")
    ]


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"entries": "25.12.2026 Christmas\nsat 09:00"}, "entries", "Line 1"),
        ({"timezone": "Berlin"}, "timezone", "Berlin"),
        ({"name": "  "}, "name", "has a name"),
        ({"name": "a\u202eb"}, "name", "cannot be printed"),
        ({"name": "Taken"}, "name", "Another calendar has this name"),
        ({"description": "x" * 256}, "description", "255"),
        ({"group": "nowhere"}, "group", "You may choose only a group"),
        ({"colour": "red"}, "colour", ""),
    ],
)
def test_what_cannot_be_used_is_refused_at_its_field(
    boss: ApiClient, values: dict[str, Any], field: str, words: str
) -> None:
    CalendarFactory(name="Taken")
    row = CalendarFactory(name="Free")
    for answer in (
        boss.post("calendars", {"name": "New", **values}),
        boss.send("PATCH", f"calendars/{row.pk}", values),
    ):
        assert answer.status_code == 422
        errors = answer.json()["errors"]
        assert {error["field"] for error in errors} == {field}
        assert words in str(errors)
    assert boss.post("calendars", {"entries": "sat"}).status_code == 422  # it has no name
    assert sorted(Calendar.objects.values_list("name", flat=True)) == ["Free", "Taken"]


def test_members_of_a_group_change_only_its_calendars() -> None:
    group = GroupFactory(name="depot")
    user = UserFactory(permissions=MAY)
    user.groups.add(group)
    client = ApiClient(user)
    shared, own, hidden = CalendarFactory(), CalendarFactory(group=group), CalendarFactory(group=GroupFactory())
    assert client.send("PATCH", f"calendars/{own.pk}", {"description": "x"}).status_code == 200
    assert client.send("PATCH", f"calendars/{shared.pk}", {"description": "x"}).status_code == 403
    assert client.send("DELETE", f"calendars/{shared.pk}").status_code == 403
    assert client.send("PATCH", f"calendars/{hidden.pk}", {"description": "x"}).status_code == 404
    assert client.send("PATCH", f"calendars/{own.pk}", {"group": None}).status_code == 422
    assert client.post("calendars", {"name": "Free"}).status_code == 422
    assert client.post("calendars", {"name": "Theirs", "group": "depot"}).status_code == 201
    viewer = ApiClient(UserFactory(permissions=["scheduling.view_calendar"]))
    assert viewer.post("calendars", {"name": "Free"}).status_code == 403


def test_a_request_with_a_key_makes_one_calendar(boss: ApiClient) -> None:
    first, second = (boss.post("calendars", {"name": "Once"}, Idempotency_Key="once") for _ in range(2))
    assert (first.status_code, second.status_code, second.json()) == (201, 201, first.json())
    assert Calendar.objects.count() == 1
