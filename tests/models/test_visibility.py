"""Tests of the rule about groups: which schedules and executions a user sees."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import connection
from django.db.models import RestrictedError
from django.test.utils import CaptureQueriesContext

from scheduling.core.lifecycle import State
from scheduling.models import Replay, ReplayGroup, Scheduler, SchedulerExecution
from scheduling.models.newest import newest_keys, newest_values, oldest_failure
from scheduling.models.visibility import EVERYTHING, Visibility, visibility_of, visibility_of_group
from tests.factories import (
    FailedExecutionFactory,
    GroupFactory,
    RefusedRowFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.database]


def member(*groups: Group, **options: object) -> User:
    found: User = UserFactory(**options)
    found.groups.add(*groups)
    return User.objects.get(pk=found.pk)


def test_a_row_without_a_group_is_seen_by_everyone_and_another_by_its_members() -> None:
    own, other = GroupFactory(), GroupFactory()
    rows = {group: SchedulerExecutionFactory(scheduler__group=group, group=group) for group in (None, own, other)}
    for user, wanted in (
        (member(own), {None, own}),
        (member(own, other), {None, own, other}),
        (member(), {None}),
        (member(superuser=True), {None, own, other}),
        (member(permissions=["scheduling.view_all_groups"]), {None, own, other}),
        (AnonymousUser(), {None}),
    ):
        visible = visibility_of(user)
        assert set(visible.executions()) == {rows[group] for group in wanted}
        assert {row.group for row in visible.schedules()} == wanted
        assert {group for group, row in rows.items() if visible.shows(row)} == wanted


def test_a_user_who_sees_all_groups_gets_no_condition() -> None:
    SchedulerFactory(group=GroupFactory())
    everything = visibility_of(member(superuser=True))
    assert everything is EVERYTHING
    assert str(everything.executions().query) == str(SchedulerExecution.objects.all().query)
    assert str(everything.schedules().query) == str(Scheduler.objects.all().query)


def test_without_any_group_in_use_one_query_is_asked_and_no_condition_is_made() -> None:
    user = member(GroupFactory())
    SchedulerExecutionFactory()
    user.get_all_permissions()
    with CaptureQueriesContext(connection) as captured:
        visible = visibility_of(user)
        visibility_of(user)
    assert len(captured) == 1
    assert str(visible.executions().query) == str(SchedulerExecution.objects.all().query)


@pytest.mark.parametrize("used", ["schedule", "execution", "replay"])
def test_one_row_with_a_group_is_enough_for_the_rule(used: str) -> None:
    group = GroupFactory()
    if used == "schedule":
        SchedulerFactory(group=group)
    elif used == "execution":
        SchedulerExecutionFactory(group=group)
    else:
        _replay(group)
    assert visibility_of(member()).is_limited


def test_a_replay_is_seen_whole_or_not_at_all() -> None:
    own, other = GroupFactory(), GroupFactory()
    replays = {name: _replay(*groups) for name, groups in
               (("none", ()), ("own", (own,)), ("mixed", (own, other)), ("other", (other,)))}  # fmt: skip
    assert set(visibility_of(member(own)).replays()) == {replays["none"], replays["own"]}
    assert set(EVERYTHING.replays()) == {*replays.values()}


def _replay(*groups: Group) -> Replay:
    from uuid import uuid4

    from django.utils import timezone as clock

    row = Replay.objects.create(key=uuid4(), requested_by="x", created_at=clock.now(), selection="x", state="done")
    for group in groups:
        ReplayGroup.objects.create(replay=row, group=group)
    return row


def test_refused_rows_are_seen_with_the_rows_that_they_are_about() -> None:
    own, other = GroupFactory(), GroupFactory()
    seen = [SchedulerExecutionFactory(group=own), SchedulerFactory(group=None)]
    hidden = [SchedulerExecutionFactory(group=other), SchedulerFactory(group=other)]
    rows = [
        RefusedRowFactory(row_id=row.pk, kind="scheduler" if isinstance(row, Scheduler) else "execution")
        for row in (*seen, *hidden)
    ]
    found = visibility_of(member(own)).refused_rows(type(rows[0]).objects.all())
    assert set(found) >= {*rows[:2]}
    assert not {*found} & {*rows[2:]} - {*rows[:2]}


def test_the_schedule_of_a_seen_execution_is_none_if_the_schedule_is_hidden() -> None:
    row = SchedulerExecutionFactory(scheduler__group=GroupFactory())
    (found,) = visibility_of(member()).with_schedules(SchedulerExecution.objects.all())
    assert found == row
    assert found.scheduler_id is not None
    assert found.scheduler is None


def test_a_run_sees_its_own_group_and_what_has_none() -> None:
    own, other = GroupFactory(), GroupFactory()
    rows = {group: SchedulerExecutionFactory(group=group) for group in (None, own, other)}
    assert set(visibility_of_group(own.pk).executions()) == {rows[None], rows[own]}
    assert set(visibility_of_group(None).executions()) == {rows[None]}


@pytest.mark.parametrize("groups", [0, 1, 2, 9])
def test_the_newest_rows_are_those_of_one_query(groups: int) -> None:
    own = [GroupFactory() for _ in range(groups)]
    teams = [None, *own, GroupFactory()]
    for number in range(40):
        state = {"failed": True} if number % 3 else {"succeeded": True}
        SchedulerExecutionFactory(group=teams[number % len(teams)], scheduler=None, **state)
    visible = Visibility(frozenset(group.pk for group in own))
    plain = list(visible.executions().order_by("-pk").values_list("pk", flat=True))
    rows = SchedulerExecution.objects.all()
    assert newest_keys(rows, visible, 0, 100, True) == plain
    assert newest_keys(visible.executions(), visible, 0, 5, True) == plain[:5]
    assert newest_keys(rows, visible, 3, 6, True) == plain[3:6]
    failed = list(visible.failures().order_by("-pk").values_list("pk", flat=True))
    of_state = rows.filter(state=State.FAILED.value)
    assert newest_keys(of_state, visible, 0, 7, False) == failed[:7]
    assert [pk for (pk,) in newest_values(of_state, visible, ("pk",), 7)] == failed[:7]
    assert [pk for (pk,) in newest_values(of_state, visible, ("pk",), 7, oldest=True)] == failed[::-1][:7]
    assert newest_keys(rows.none(), visible, 0, 5, True) == []
    assert oldest_failure(visible) == min(row.finished_at for row in visible.failures())
    assert oldest_failure(EVERYTHING) == min(row.finished_at for row in EVERYTHING.failures())


# --- a group that is in use


@pytest.mark.parametrize("used", ["schedule", "execution", "replay"])
def test_a_used_group_is_not_deleted(used: str) -> None:
    group = GroupFactory()
    if used == "schedule":
        SchedulerFactory(group=group)
    elif used == "execution":
        FailedExecutionFactory(group=group)
    else:
        _replay(group)
    with pytest.raises(RestrictedError, match="A group that is in use cannot be deleted") as caught:
        group.delete()
    assert "Still in use by" in str(caught.value)
    with pytest.raises(RestrictedError):
        Group.objects.filter(pk=group.pk).delete()
    assert Group.objects.filter(pk=group.pk).exists()


def test_a_group_is_deleted_when_its_last_row_is_gone() -> None:
    group = GroupFactory()
    row = SchedulerExecutionFactory(group=group)
    row.delete()
    group.delete()
    assert not Group.objects.filter(pk=group.pk).exists()


def test_only_one_of_the_rows_is_read_to_refuse_it() -> None:
    group = GroupFactory()
    SchedulerExecutionFactory.create_batch(30, group=group, scheduler=None)
    with CaptureQueriesContext(connection) as captured, pytest.raises(RestrictedError):
        group.delete()
    selects = [query["sql"] for query in captured if "scheduling_schedulerexecution" in query["sql"]]
    assert len(selects) == 1
    assert "LIMIT 1" in selects[0]


def test_the_permission_exists() -> None:
    assert Permission.objects.filter(codename="view_all_groups", content_type__model="scheduler").exists()
