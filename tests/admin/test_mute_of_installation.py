"""An alert without a group may be about the whole installation. Only users who see all groups may mute it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone as clock

from scheduling.models import Alert
from scheduling.operations import alerts
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Refused
from tests.admin.conftest import logged_in
from tests.admin.pages import address
from tests.factories import AlertFactory, SchedulerFactory, UserFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/scheduling/alert/"
RIGHTS = ("scheduling.view_alert", "scheduling.acknowledge_alert")
WHY = "Only users who see all groups may mute or unmute an alert about the whole installation."


@pytest.fixture
def group() -> Group:
    """A group that is in use."""
    group = Group.objects.create(name="payroll")
    SchedulerFactory(group=group)
    return group


@pytest.fixture
def member(group: Group) -> Client:
    """An operator who sees only this group."""
    user = UserFactory(username="olga", permissions=list(RIGHTS))
    user.groups.add(group)
    return logged_in(user)


@pytest.fixture
def all_groups() -> Client:
    """An operator who sees all groups."""
    return logged_in(UserFactory(username="anna", permissions=[*RIGHTS, "scheduling.view_all_groups"]))


def muted() -> set[int]:
    return set(Alert.objects.exclude(muted_until=None).values_list("pk", flat=True))


def test_a_member_of_one_group_acknowledges_it_and_does_not_mute_it(member: Client) -> None:
    alert = AlertFactory(kind="no_producer")
    page, form = address("alert", "change", alert.pk), address("alert", "mute", alert.pk)
    said = member.get(page).content.decode()
    assert address("alert", "acknowledge", alert.pk) in said
    assert form not in said
    for answer in (member.get(form, follow=True), member.post(form, {"span": "4h"}, follow=True)):
        assert WHY in answer.content.decode()
    member.post(address("alert", "acknowledge", alert.pk))
    assert Alert.objects.get(pk=alert.pk).acknowledged_by == "olga"
    assert muted() == set()


def test_the_list_says_why_and_mutes_none_of_the_ticked_alerts(member: Client, group: Group) -> None:
    own, installation = AlertFactory(group=group), AlertFactory()
    ticked = {"action": "mute_selected", "_selected_action": [own.pk, installation.pk]}
    assert WHY in member.post(LIST, ticked, follow=True).content.decode()
    assert WHY in member.post(LIST, {**ticked, "post": "yes", "span": "4h"}, follow=True).content.decode()
    assert muted() == set()


def test_a_member_mutes_the_alerts_of_the_group(member: Client, group: Group) -> None:
    own, over = AlertFactory(group=group), AlertFactory(over=True)
    assert address("alert", "mute", own.pk) in member.get(address("alert", "change", own.pk)).content.decode()
    ticked = {"action": "mute_selected", "_selected_action": [own.pk, over.pk], "post": "yes", "span": "4h"}
    member.post(f"{LIST}?state=all", ticked)
    assert muted() == {own.pk}


def test_a_user_who_sees_all_groups_mutes_it(all_groups: Client, group: Group) -> None:
    alert = AlertFactory()
    assert address("alert", "mute", alert.pk) in all_groups.get(address("alert", "change", alert.pk)).content.decode()
    all_groups.post(address("alert", "mute", alert.pk), {"span": "4h"})
    assert muted() == {alert.pk}


def test_where_no_groups_are_used_each_operator_mutes_it() -> None:
    alert = AlertFactory()
    logged_in(UserFactory(permissions=list(RIGHTS))).post(address("alert", "mute", alert.pk), {"span": "4h"})
    assert muted() == {alert.pk}


def test_the_operation_refuses_it_at_each_door(group: Group) -> None:
    user = UserFactory(permissions=list(RIGHTS))
    user.groups.add(group)
    AlertFactory()
    with pytest.raises(Refused) as refused:
        alerts.mute(Actor(user), Alert.objects.all(), clock.now() + timedelta(hours=1))
    assert (refused.value.code, refused.value.said) == ("FORBIDDEN", WHY)
    assert muted() == set()


def test_a_member_of_a_group_does_not_end_the_mute_of_an_alert_without_one(member: Client, group: Group) -> None:
    until = clock.now() + timedelta(hours=1)
    own, installation = AlertFactory(group=group, muted_until=until), AlertFactory(muted_until=until)
    page = address("alert", "change", installation.pk)
    assert address("alert", "unmute", installation.pk) not in member.get(page).content.decode()
    answer = member.post(address("alert", "unmute", installation.pk), follow=True)
    assert WHY in answer.content.decode()
    member.post(address("alert", "unmute", own.pk))
    assert muted() == {installation.pk}


def test_an_alert_that_has_lost_its_group_meanwhile_is_not_muted(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    user = UserFactory(permissions=list(RIGHTS))
    user.groups.add(group)
    AlertFactory()
    monkeypatch.setattr(alerts, "check_mute", lambda actor, rows: None)
    assert alerts.mute(Actor(user), Alert.objects.all(), clock.now() + timedelta(hours=1)) == []
    assert muted() == set()
