"""Which groups a user may set on a schedule, and what the pages say about groups."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from scheduling.management.groups import EDITOR, make_groups
from scheduling.models import Replay, ReplayGroup, Scheduler, SchedulerExecution
from tests.admin.conftest import logged_in
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.factories import (
    FailedExecutionFactory,
    GroupFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.database]
INBOX, ACTIVITY = "/admin/scheduling/failedexecution/", "/admin/scheduling/dashboard/activity/"


@pytest.fixture
def team(db: None) -> Group:
    return Group.objects.create(name="team a")


@pytest.fixture
def others(db: None) -> Group:
    return Group.objects.create(name="team b")


@pytest.fixture
def user(team: Group) -> User:
    list(make_groups())
    found: User = UserFactory(username="ann")
    found.groups.add(team, Group.objects.get(name=EDITOR))
    return found


@pytest.fixture
def member(user: User) -> Client:
    return logged_in(user)


@pytest.fixture
def root(db: None) -> Client:
    return logged_in(UserFactory(username="root", superuser=True))


def posted(client: Client, address: str, **values: Any) -> Any:
    return client.post(address, form(worker=worker(), **values))


# --- the form


def test_a_member_chooses_among_the_own_groups(member: Client, root: Client, team: Group, others: Group) -> None:
    page = member.get(ADD).content.decode()
    assert "team a" in page
    assert "team b" not in page
    assert "team b" in root.get(ADD).content.decode()
    assert posted(member, ADD, group=team.pk).status_code == 302
    assert Scheduler.objects.latest("pk").group == team


@pytest.mark.parametrize("in_use", [False, True])
def test_another_group_is_refused_with_a_sentence(member: Client, others: Group, in_use: bool) -> None:
    if in_use:
        SchedulerFactory(group=others)
    count = Scheduler.objects.count()
    response = posted(member, ADD, group=others.pk)
    assert response.status_code == 200
    assert "You may choose only a group that you are a member of." in response.content.decode()
    row = SchedulerFactory()
    assert "only a group that you are a member of" in posted(member, change(row), group=others.pk).content.decode()
    row.refresh_from_db()
    assert row.group is None
    assert Scheduler.objects.count() == count + 1


def test_a_user_who_sees_all_groups_sets_each_of_them(root: Client, others: Group) -> None:
    assert posted(root, ADD, group=others.pk).status_code == 302
    assert Scheduler.objects.latest("pk").group == others


def test_an_edit_of_other_fields_keeps_the_group(member: Client, team: Group) -> None:
    row = SchedulerFactory(group=team)
    posted(member, change(row), group=team.pk, description="anew")
    row.refresh_from_db()
    assert (row.group, row.description) == (team, "anew")


def test_a_copy_takes_the_group_over_and_another_group_is_refused(member: Client, team: Group, others: Group) -> None:
    row, hidden = SchedulerFactory(group=team), SchedulerFactory(group=others, description="secret plan")
    page = member.get(f"{ADD}?copy={row.pk}").content.decode()
    assert f'<option value="{team.pk}" selected>' in page
    assert "secret plan" not in member.get(f"{ADD}?copy={hidden.pk}").content.decode()
    assert posted(member, f"{ADD}?copy={row.pk}", group=others.pk).status_code == 200


def test_a_schedule_that_leaves_the_group_of_a_member_is_gone_for_the_member(
    member: Client, root: Client, team: Group, others: Group
) -> None:
    row = SchedulerFactory(group=team, description="Payroll")
    run = SchedulerExecutionFactory(scheduler=row, group=team, succeeded=True)
    posted(root, change(row), group=others.pk, description="Payroll")
    assert member.get(overview(row)).status_code == 302
    page = member.get(f"/admin/scheduling/schedulerexecution/{run.pk}/change/")
    assert page.status_code == 200  # the run keeps its group
    assert "Payroll" not in page.content.decode()
    assert member.get(f"/admin/scheduling/schedulerexecution/{run.pk}/rerun/").status_code == 200
    refused = member.post(f"/admin/scheduling/schedulerexecution/{run.pk}/rerun/", {}).content.decode()
    assert "the schedule is deleted, or you may not see it." in refused
    assert SchedulerExecution.objects.count() == 1


@pytest.mark.parametrize("address", ["/admin/scheduling/schedulerexecution/", INBOX])
def test_a_search_by_the_name_of_a_hidden_schedule_finds_nothing(member: Client, others: Group, address: str) -> None:
    """The run is seen, because the schedule got its group later. A hit would tell the name of the schedule."""
    hidden = SchedulerFactory(group=others, description="Payroll")
    run = FailedExecutionFactory(scheduler=hidden, group=None)
    for query in ("Payroll", "schedule:Payroll"):
        response = member.get(address, {"q": query, "group": "each"} if address == INBOX else {"q": query})
        assert response.status_code == 200  # one schedule with the name would be a redirect to its runs
        assert list(response.context["cl"].result_list) == []
    assert [row.pk for row in member.get(address).context["cl"].result_list] == [run.pk]


def test_the_runs_that_a_schedule_had_in_another_group_are_on_none_of_its_pages(
    member: Client, root: Client, team: Group, others: Group
) -> None:
    row = SchedulerFactory(group=team)
    first, *_own = [SchedulerExecutionFactory(scheduler=row, group=team, succeeded=True) for _ in range(2)]
    last = SchedulerExecutionFactory(scheduler=row, group=team, running=True)
    hidden = FailedExecutionFactory(scheduler=row, group=others)
    address = f"/schedulerexecution/{hidden.pk}/change/"
    pages = (
        overview(row), "/admin/scheduling/dashboard/part/schedules/", "/admin/scheduling/scheduler/",
        f"/admin/scheduling/worker/{row.worker_id}/change/", f"/admin/scheduling/schedulerexecution/{last.pk}/change/",
    )  # fmt: skip
    for page in pages:
        assert address not in member.get(page).content.decode(), page
        assert address in root.get(page).content.decode(), page
    assert f"/schedulerexecution/{first.pk}/change/" in member.get(overview(row)).content.decode()


# --- a group that is in use


@pytest.mark.parametrize("used", ["schedule", "execution"])
def test_the_page_delete_of_a_used_group_says_why_and_names_no_row(others: Group, used: str) -> None:
    row = SchedulerFactory(description="secret plan")
    if used == "schedule":
        Scheduler.objects.filter(pk=row.pk).update(group=others)
    else:
        SchedulerExecutionFactory(scheduler=row, group=others, execution_key="secret plan")
    client = logged_in(UserFactory(permissions=["auth.view_group", "auth.delete_group"]))
    for address, data in (
        (f"/admin/auth/group/{others.pk}/delete/", None),
        ("/admin/auth/group/", {"action": "delete_selected", "_selected_action": [others.pk]}),
    ):
        response = client.get(address) if data is None else client.post(address, data)
        page = response.content.decode()
        assert "would require deleting the following protected related objects" in page
        assert "some of them have this group. Without it, everyone would see them." in page
        assert "secret plan" not in page
    client.post(f"/admin/auth/group/{others.pk}/delete/", {"post": "yes"})
    client.post("/admin/auth/group/", {"action": "delete_selected", "_selected_action": [others.pk], "post": "yes"})
    assert Group.objects.filter(pk=others.pk).exists()


def test_an_unused_group_is_deleted(others: Group) -> None:
    client = logged_in(UserFactory(permissions=["auth.view_group", "auth.delete_group"]))
    client.post(f"/admin/auth/group/{others.pk}/delete/", {"post": "yes"})
    assert not Group.objects.filter(pk=others.pk).exists()


# --- targets


def test_a_target_that_hidden_schedules_use_names_only_those_that_are_seen(member: Client, others: Group) -> None:
    hidden = SchedulerFactory(group=others, description="secret plan", handler="tests.anything")
    page = member.get(f"/admin/scheduling/worker/{hidden.worker_id}/delete/").content.decode()
    assert "schedules that you may not see" in page
    assert "secret plan" not in page
    SchedulerFactory(description="open plan", handler="tests.anything")
    page = member.get(f"/admin/scheduling/worker/{hidden.worker_id}/delete/").content.decode()
    assert "open plan" in page
    assert "secret plan" not in page
    assert "schedules that you may not see" not in page


# --- replays


def test_a_replay_by_a_member_holds_only_what_the_member_sees(member: Client, team: Group, others: Group) -> None:
    own = [FailedExecutionFactory(group=group) for group in (team, None)]
    FailedExecutionFactory(group=others)
    data = {
        "action": "republish_selected", "_selected_action": ["all"], "select_across": "1", "post": "yes",
        "canary": "on", "minutes": "0", "count": "2", "typed": "2", "query": "",
    }  # fmt: skip
    member.post(INBOX, data)
    made = Replay.objects.get()
    assert made.total == 2
    assert sorted(pk for chunk in made.chunks.all() for pk, _attempt in chunk.items) == [row.pk for row in own]
    assert [row.group for row in ReplayGroup.objects.all()] == [team]
    assert member.get(f"/admin/scheduling/replay/{made.pk}/change/").status_code == 200
    stranger = logged_in(UserFactory(permissions=["scheduling.view_failedexecution"]))
    assert stranger.get(f"/admin/scheduling/replay/{made.pk}/change/").status_code == 302


# --- the log


def test_the_activity_of_a_deleted_schedule_stays_with_its_group(
    root: Client, user: User, team: Group, others: Group
) -> None:
    for group, name in ((team, "own plan"), (others, "secret plan"), (None, "open plan")):
        row = SchedulerFactory(group=group, description=name)
        posted(root, change(row), group=group.pk if group else "", description=f"{name} anew")
        root.post(f"/admin/scheduling/scheduler/{row.pk}/delete/", {"post": "yes"})
    assert not Scheduler.objects.filter(description__contains=" plan").exists()
    page = logged_in(user).get(ACTIVITY).content.decode()
    assert "own plan" in page
    assert "open plan" in page
    assert "secret plan" not in page
    user.user_permissions.add(Permission.objects.get(codename="view_all_groups"))
    assert "secret plan" in logged_in(user).get(ACTIVITY).content.decode()


def test_the_activity_of_a_schedule_that_got_its_group_later_is_hidden_when_it_is_deleted(
    root: Client, member: Client, others: Group
) -> None:
    row = SchedulerFactory(description="plan of all")
    posted(root, change(row), description="plan of all, edited")
    assert "plan of all" in member.get(ACTIVITY).content.decode()
    posted(root, change(row), description="plan of all, edited", group=others.pk)
    assert "plan of all" not in member.get(ACTIVITY).content.decode()
    root.post(f"/admin/scheduling/scheduler/{row.pk}/delete/", {"post": "yes"})
    assert "plan of all" not in member.get(ACTIVITY).content.decode()


def test_many_hidden_entries_do_not_end_the_activity(root: Client, member: Client, others: Group) -> None:
    seen, hidden = SchedulerFactory(description="open plan"), SchedulerFactory(group=others)
    keeper = User.objects.get(username="root")
    LogEntry.objects.log_actions(keeper.pk, [seen], 2, "first")
    for _ in range(3):
        LogEntry.objects.log_actions(keeper.pk, [hidden] * 700, 2, "more")
    response = member.get(ACTIVITY)
    assert "open plan" not in response.content.decode()
    older = response.context["older"]
    assert older
    assert "open plan" in member.get(f"{ACTIVITY}?{older}").content.decode()


def test_the_group_is_shown_on_the_page_of_the_schedule(member: Client, team: Group) -> None:
    assert "team a" in member.get(overview(SchedulerFactory(group=team))).content.decode()


def test_a_group_of_many_is_a_group_too(user: User) -> None:
    """With more groups than are read one by one, the lists are the same."""
    groups = [GroupFactory() for _ in range(12)]
    user.groups.add(*groups)
    rows = [FailedExecutionFactory(group=group) for group in (*groups, None, GroupFactory())]
    client = logged_in(user)
    for address in ("/admin/scheduling/schedulerexecution/", f"{INBOX}?group=each"):
        found = [row.pk for row in client.get(address).context["cl"].result_list]
        assert found == sorted((row.pk for row in rows[:-1]), reverse=True)
