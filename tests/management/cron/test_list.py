"""`cron list`: filters, pages, rows that cannot be read, hostile names, and a table that fits the terminal."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from scheduling.management.cron.table import width_of
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.management.cron.calls import cron

pytestmark = pytest.mark.django_db

HOSTILE = "\x1b[31mred\u202e\nnext\u3000\u5b57" + "x" * 240


def test_filters_choose_the_schedules() -> None:
    backup = SchedulerFactory(name="backup", description="Nightly backup")
    paused = SchedulerFactory(name="paused", off=True)
    failing = SchedulerFactory(name="failing", handler="tests.fail")
    SchedulerExecutionFactory(scheduler=failing, failed=True)
    for options, wanted in [
        (["backup"], [backup.pk]),
        (["--status", "paused"], [paused.pk]),
        (["--health", "failing"], [failing.pk]),
        (["--type", "report"], []),
        (["tests.noop", "nightly"], [backup.pk]),
    ]:
        found = cron("list", *options, "--json")
        assert [row["id"] for row in found.json["schedules"]] == wanted, options
    first = cron("list", "--json", "--limit", 1, "tests.").json
    assert [first["version"], first["kind"], first["next"]] == [1, "schedules", backup.pk]
    rest = cron("list", "--json", "--after", first["next"], "tests.").json
    assert [row["name"] for row in rest["schedules"]] == ["paused", "failing"]


def test_a_user_sees_the_own_groups_only(monkeypatch: pytest.MonkeyPatch) -> None:
    team = Group.objects.create(name="team")
    SchedulerFactory(name="ours", group=team)
    SchedulerFactory(name="shared")
    member = UserFactory(username="ann", permissions=["scheduling.view_scheduler"])
    UserFactory(username="ben", permissions=["scheduling.view_scheduler"])
    UserFactory(username="nothing")
    member.groups.add(team)
    assert "ours" in cron("list", "--as", "ann").out
    assert "ours" in cron("list").out  # a person at the terminal reads everything
    monkeypatch.setenv("CRON_AS", "ben")
    seen = cron("list")
    assert "shared" in seen.out
    assert "ours" not in seen.out
    refused = cron("list", "--as", "nothing", "--json")
    assert (refused.code, refused.json["kind"], refused.json["code"]) == (4, "refused", "FORBIDDEN")
    assert cron("list", "--as", "zoe").code == 3


def test_a_hostile_name_cannot_control_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    SchedulerFactory(description=HOSTILE[:255])
    monkeypatch.setenv("COLUMNS", "90")
    shown = cron("list", "red", "--no-color", terminal=True)
    head, line = shown.out.splitlines()
    assert "\\x1b[31mred\\u202e" in line
    assert "\x1b" not in shown.out
    assert "…" in line
    assert max(width_of(head), width_of(line)) <= 90
    assert "\x1b[1mID" in cron("list", "red", terminal=True).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in cron("list", "red", terminal=True).out


def test_a_row_that_cannot_be_read_does_not_stop_the_others() -> None:
    bad, good = SchedulerFactory(), SchedulerFactory(name="good")
    if connection.vendor != "sqlite":
        pytest.skip("only SQLite stores such a value")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_scheduler SET created_at = 'no time' WHERE id = %s", [bad.pk])
    found = cron("list", "tests.noop")
    assert " good " in found.out
    assert f"{bad.pk} cannot be read" in found.err
    assert [row["id"] for row in cron("list", "--json", "tests.noop").json["unusable"]] == [bad.pk]
    assert good.pk
