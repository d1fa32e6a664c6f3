"""The predecessor of a schedule at the doors for programs: the HTTP API, schedule files, code and commands."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission

from scheduling import api
from scheduling.core.schedule_files import Entry
from scheduling.models import Scheduler
from scheduling.operations.actor import Actor
from scheduling.operations.schedule_export import export
from scheduling.operations.schedule_plan import plan
from scheduling.operations.schedule_steps import Act
from tests.factories import SchedulerFactory, UserFactory
from tests.http.client import ApiClient
from tests.operations.applying import SOURCE, YEARLY, applied, refused, row_of

pytestmark = pytest.mark.django_db

MAY = [f"scheduling.{verb}_scheduler" for verb in ("view", "add", "change", "delete")]


@pytest.fixture
def root() -> Actor:
    return Actor(UserFactory(superuser=True), "command")


@pytest.fixture
def team() -> Group:
    return Group.objects.create(name="team")


@pytest.fixture
def member(team: Group) -> Any:
    """A user of a team. Another group has a schedule, “payroll”."""
    user = UserFactory(permissions=MAY)
    user.groups.add(team)
    SchedulerFactory(name="payroll", group=Group.objects.create(name="others"))
    return user


def entry(name: str, after: str | None = None, **values: Any) -> Entry:
    own = {} if after is None else {"after": after}
    return {"name": name, "schedule": YEARLY, "worker": "tests.noop", **own, **values}


def edges() -> dict[str, str | None]:
    rows = Scheduler.objects.exclude(name=None).select_related("after")
    return {row.name or "": row.after.name if row.after else None for row in rows}


# --- the HTTP API


def test_the_api_takes_a_name_or_an_id() -> None:
    client = ApiClient(UserFactory(superuser=True))
    first, nameless = SchedulerFactory(name="load"), SchedulerFactory()
    body = {"schedule": "0 8 * * *", "worker": "tests.noop", "after": "load", "after_late": "fail"}
    made = client.post("schedulers", body)
    assert made.status_code == 201, made.content
    shape = made.json()
    assert (shape["after"], shape["after_id"], shape["after_late"]) == ("load", first.pk, "fail")
    assert (shape["after_span"], shape["after_within_seconds"]) == ("day", 43_200)
    path = f"schedulers/{shape['id']}"
    assert client.send("PATCH", path, {"after": f"schedule-{nameless.pk}"}).json()["after_id"] == nameless.pk
    assert client.send("PATCH", path, {"after_id": first.pk}).json()["after"] == "load"
    assert client.send("PATCH", path, {"after": None}).json()["after"] is None


def test_the_api_refuses_what_cannot_be_used() -> None:
    client = ApiClient(UserFactory(superuser=True))
    SchedulerFactory(name="load")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("after", {"after": "missing"}),
        ("after_id", {"after": "load", "after_id": -1}),
        ("after_id", {"after_id": 2**63 - 1}),
        ("after_id", {"after_id": True}),
        ("after_within_seconds", {"after": "load", "after_within_seconds": 59}),
        ("after_within_seconds", {"after_within_seconds": 10**9}),
        ("after_span", {"after_span": "week"}),
        ("after_late", {"after_late": ""}),
        ("after", {"after": "load\u202e"}),
        ("after", {"after": "x" * 300}),
    ]
    for field, values in wrong:
        answer = client.post("schedulers", {"schedule": "0 8 * * *", "worker": "tests.noop", **values})
        assert answer.status_code in (400, 422)
        assert field in {problem["field"] for problem in answer.json()["errors"]}, answer.content


def test_the_api_names_a_circle_and_does_not_delete_what_others_wait_for() -> None:
    client = ApiClient(UserFactory(superuser=True))
    first = SchedulerFactory(name="load")
    second = SchedulerFactory(name="report", after=first)
    answer = client.send("PATCH", f"schedulers/{first.pk}", {"after": "report"})
    assert "in a circle" in answer.json()["errors"][0]["message"]
    deleted = client.send("DELETE", f"schedulers/{first.pk}")
    assert (deleted.status_code, "Other schedules wait" in deleted.content.decode()) == (409, True)
    assert client.send("DELETE", f"schedulers/{second.pk}").status_code == 204
    assert client.send("DELETE", f"schedulers/{first.pk}").status_code == 204


def test_the_api_shows_and_takes_no_schedule_of_another_group(member: Any) -> None:
    client, secret = ApiClient(member), row_of("payroll")
    row = SchedulerFactory(name="report", after=secret)
    shape = client.get(f"schedulers/{row.pk}").json()
    assert (shape["after"], shape["after_id"]) == (None, None)
    for values in ({"after": "payroll"}, {"after_id": secret.pk}, {"after": f"schedule-{secret.pk}"}):
        answer = client.send("PATCH", f"schedulers/{row.pk}", values)
        assert answer.status_code in (400, 422), answer.content
    same = client.send("PATCH", f"schedulers/{row.pk}", {"after": None, "after_id": None, "description": "new"})
    assert same.status_code == 200
    row.refresh_from_db()
    assert (row.description, row.after_id) == ("new", secret.pk)  # what is not seen stays


# --- code


def test_code_names_the_predecessor() -> None:
    api.schedule("load", "0 1 * * *", "tests.noop")
    api.schedule("report", "0 2 * * *", "tests.noop", after="load", after_late="run", after_within_seconds=600)
    row = row_of("report")
    assert (row.after, row.after_late, row.after_within_seconds) == (row_of("load"), "run", 600)
    again = api.schedule("report", "0 2 * * *", "tests.noop", after="load")
    assert again.changed == ()
    assert api.schedule("report", "0 2 * * *", "tests.noop", after=None).changed == ("after",)
    for wrong in ("missing", "NO NAME", ""):
        with pytest.raises(ValueError, match="after="):
            api.schedule("report", "0 2 * * *", "tests.noop", after=wrong)
    api.schedule("report", "0 2 * * *", "tests.noop", after="load")
    with pytest.raises(ValueError, match="circle"):
        api.schedule("load", "0 1 * * *", "tests.noop", after="report")


# --- files


def test_a_file_may_make_both_in_any_order(root: Actor) -> None:
    entries = [entry("a", "b"), entry("b", "c", after_span="previous"), entry("c")]
    applied(root, entries)
    assert edges() == {"a": "b", "b": "c", "c": None}
    assert not plan(root, entries, SOURCE).is_drift
    assert {one["name"]: one.get("after") for one in export(root).entries} == edges()


def test_a_file_may_turn_a_chain_around(root: Actor) -> None:
    applied(root, [entry("a", "b"), entry("b", "c"), entry("c")])
    found = applied(root, [entry("a"), entry("b", "a"), entry("c", "b")])
    assert [[(edit.name, edit.old, edit.new) for edit in step.edits] for step in found.steps] == [
        [("after", "b", None)], [("after", "c", "a")], [("after", None, "b")],
    ]  # fmt: skip
    assert edges() == {"a": None, "b": "a", "c": "b"}


def test_a_prune_deletes_what_nothing_waits_for_any_longer(root: Actor) -> None:
    applied(root, [entry("a"), entry("b", "a"), entry("c", "b"), entry("d", "a")])
    found = applied(root, [entry("d")], prune=True, count=3)
    assert len(found.of(Act.DELETE)) == 3
    assert edges() == {"d": None}


def test_a_prune_keeps_what_another_schedule_waits_for(root: Actor) -> None:
    applied(root, [entry("a"), entry("b")])
    SchedulerFactory(name="others", after=row_of("a"))
    assert "Other schedules wait for this one" in str(refused(root, [entry("b")], prune=True, count=1).problems)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([entry("a", "a")], "a → a"),
        ([entry("a", "b"), entry("b", "c"), entry("c", "a")], "a → b → c → a"),
        ([entry("a", "missing")], "There is no schedule “missing”"),
        ([entry("a", "payroll")], "There is no schedule “payroll”"),
        ([entry("a", after_within_seconds=5)], "from 60 to 604800"),
        ([entry("a", 5)], "a.after"),  # type: ignore[arg-type]
        ([entry("a", after_id=1)], "after_id"),
    ],
)
def test_a_file_with_a_predecessor_that_cannot_be_used_changes_nothing(
    member: Any, entries: list[Entry], said: str
) -> None:
    assert said in str(refused(Actor(member, "command"), entries).problems)


def test_a_file_names_no_schedule_of_another_group(member: Any) -> None:
    actor = Actor(member, "command")
    SchedulerFactory(name="report", schedule=YEARLY, after=row_of("payroll"))
    made = export(actor)
    assert made.entries == []
    assert [one.reason for one in made.left_out] == ["it waits for a schedule that you may not see"]
    found = plan(actor, [entry("report"), entry("load")], SOURCE)
    assert "payroll" not in str(found)
    found = plan(actor, [entry("report", "load"), entry("load")], SOURCE)
    assert "payroll" not in str(found)


def test_a_delete_permission_is_not_enough_to_see(member: Any) -> None:
    member.user_permissions.add(Permission.objects.get(codename="view_all_groups"))
    assert export(Actor(type(member).objects.get(pk=member.pk), "command")).left_out == []
