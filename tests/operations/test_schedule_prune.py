"""Schedules that a file owns and does not hold any more: what a prune deletes, what stays, and what is made twice."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection

from scheduling.core.schedule_files import Entry, nameless
from scheduling.models import Scheduler
from scheduling.operations import schedules
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Code, Refused
from scheduling.operations.schedule_export import export
from scheduling.operations.schedule_plan import plan
from scheduling.operations.schedule_steps import Act, Rules
from tests.factories import SchedulerFactory, UserFactory, WorkerFactory
from tests.operations.applying import SOURCE, YEARLY, applied, refused, row_of

pytestmark = pytest.mark.django_db

A: Entry = {"name": "a", "schedule": YEARLY, "worker": "tests.noop"}


@pytest.fixture
def root() -> Actor:
    return Actor(UserFactory(superuser=True), "command")


def test_prune(root: Actor) -> None:
    entries: list[Entry] = [{"name": f"n{i:02}", "schedule": YEARLY, "worker": "tests.noop"} for i in range(12)]
    SchedulerFactory(name="own")
    SchedulerFactory(name="upper", source_file=SOURCE.upper())
    applied(root, entries)
    assert applied(root, entries[:11]).notes == (
        "Schedules that this file owns and does not hold any more: 1. Only a prune deletes them.",
    )
    assert len(applied(root, entries[:7], prune=True).of(Act.DELETE)) == 5
    applied(root, entries)
    assert refused(root, entries[:3], prune=True).code == Code.COUNT_DIFFERS
    assert refused(root, entries[:3], prune=True, count=8).extra == {"count": 9}
    applied(root, entries[:3], prune=True, count=9)
    other: list[Entry] = [{"name": "other", "schedule": YEARLY, "worker": "tests.noop"}]
    for all_gone in ([], other):  # an empty file, and a file of another team that has the same name
        assert plan(root, all_gone, SOURCE, Rules(prune=True)).needs_count
        assert refused(root, all_gone, prune=True).code == Code.COUNT_DIFFERS
    applied(root, [], prune=True, count=3)
    assert set(Scheduler.objects.values_list("name", flat=True)) == {"own", "upper"}
    assert LogEntry.objects.filter(action_flag=3).count() == 17


def test_what_cannot_be_read_is_not_pruned(root: Actor) -> None:
    applied(root, [{**A, "name": name} for name in "abcd"])
    Scheduler.objects.filter(name="c").update(params=[1])
    # Python reads no number with so many digits. MySQL stores none.
    is_mysql = connection.vendor == "mysql" and not connection.mysql_is_mariadb
    params = '"text"' if is_mysql else '{"x": ' + "9" * 5_000 + "}"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_scheduler SET params = %s WHERE name = 'd'", [params])
    made = export(root, source=SOURCE)
    keys = dict(Scheduler.objects.filter(name__in="cd").values_list("name", "pk"))
    assert {row.id for row in made.left_out} == set(keys.values())
    found = plan(root, made.entries, SOURCE, Rules(prune=True))
    assert (found.of(Act.DELETE), [(one.field, one.code) for one in found.problems]) == (
        [], [("c", "unusable"), ("d", "unusable")],
    )  # fmt: skip
    assert all("cannot be read, so it is not deleted" in one.message for one in found.problems)
    with pytest.raises(Refused):
        applied(root, made.entries, prune=True)
    assert Scheduler.objects.count() == 4
    named = plan(root, [*made.entries, {**A, "name": "c"}, {**A, "name": "d"}], SOURCE, Rules(prune=True))
    # The file mends what Python reads; what it does not read is named once.
    assert [one.field for one in named.problems] == ([] if is_mysql else ["d"])


def test_a_name_that_a_file_finds_its_schedule_by_stays(root: Actor) -> None:
    applied(root, [A])
    for name in (None, "b"):
        with pytest.raises(Refused, match="schedule file") as said:
            schedules.change(root, row_of("a").pk, {"name": name})
        assert [(one.field, one.code) for one in said.value.problems] == [("name", "owner")]
    schedules.change(root, row_of("a").pk, {"name": "a", "time_limit": 5})
    free = SchedulerFactory(name="free")
    assert schedules.change(root, free.pk, {"name": None}).name is None


RENAMED: dict[str, Any] = {"no name": None, "another name": "b"}


@pytest.mark.parametrize("name", RENAMED.values(), ids=RENAMED)
def test_a_schedule_whose_name_was_lost_is_not_made_twice(root: Actor, name: str | None) -> None:
    WorkerFactory(name="tests.mark")
    soon = {"name": "soon", "date_time": "2090-07-01T12:00", "timezone": "Europe/Madrid", "worker": "tests.noop"}
    applied(root, [A, soon])
    row = row_of("a")
    Scheduler.objects.filter(pk=row.pk).update(name=name)
    Scheduler.objects.filter(name="soon").update(name="later")
    said = refused(root, [A, soon])
    assert [(one.field, one.code) for one in said.problems] == [("a", "copy"), ("soon", "copy")]
    assert f"“{name or nameless(row.pk)}”" in said.problems[0].message
    others = [
        {**A, "schedule": "5 0 1 1 *"},
        {**soon, "timezone": "Asia/Tokyo"},
        {**A, "name": "c", "worker": "tests.mark"},
    ]
    assert plan(root, others, SOURCE).problems == ()
    assert plan(root, [A, soon], "other.yaml").problems == ()
    applied(root, [A, soon], prune=True, count=2)
    assert set(Scheduler.objects.values_list("name", flat=True)) == {"a", "soon"}
