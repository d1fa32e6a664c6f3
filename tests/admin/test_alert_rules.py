"""The pages of alert rules: the form of each kind, the channels, the preview, and the rule about groups."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone as clock

from scheduling.core.alert_rules import KINDS, RuleKind, Threshold
from scheduling.management.groups import EDITOR, make_groups
from scheduling.models import AlertRule, Channel
from tests.admin.conftest import logged_in, member
from tests.admin.pages import address, text_in
from tests.factories import (
    AlertFactory,
    AlertRuleFactory,
    ChannelFactory,
    FailedExecutionFactory,
    SchedulerFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db

LIST, ADD = "/admin/scheduling/alertrule/", "/admin/scheduling/alertrule/add/"


@pytest.fixture
def editor() -> Client:
    return member(EDITOR)


def form_of(kind: RuleKind, **values: Any) -> dict[str, Any]:
    """Return the values that a form of this kind needs."""
    found = {"name": f"new {kind.value}", "severity": "info", **values}
    if KINDS[kind].needs_schedule:
        found = {"at": "06:30", "schedule": SchedulerFactory().pk, **found}
    return found


@pytest.mark.parametrize("kind", list(RuleKind))
def test_each_kind_has_a_form_that_asks_for_its_fields_only(editor: Client, kind: RuleKind) -> None:
    page = editor.get(f"{ADD}?kind={kind.value}")
    fields = page.context["adminform"].form.fields
    assert {one.value for one in Threshold} & {*fields} == {one.value for one in KINDS[kind].bounds}
    assert ("group" in fields) == KINDS[kind].has_scope
    assert ("at" in fields) == KINDS[kind].needs_schedule
    if KINDS[kind].has_scope:
        empty = "Choose a schedule" if KINDS[kind].needs_schedule else "All schedules"
        assert f'data-placeholder="{empty}"' in page.content.decode()
    assert page.context["adminform"].form.initial["severity"] == KINDS[kind].severity
    assert editor.post(f"{ADD}?kind={kind.value}", form_of(kind)).status_code == 302
    made = AlertRule.objects.get(name=f"new {kind.value}")
    assert (made.kind, made.number, made.seconds) == (kind.value, None, None)
    assert editor.get(address("alertrule", "change", made.pk)).status_code == 200


def test_a_new_rule_begins_with_the_choice_of_its_kind(editor: Client) -> None:
    for query in ("", "?kind=nonsense"):
        page = editor.get(f"{ADD}{query}")
        assert all(f'href="?kind={kind.value}"' in page.content.decode() for kind in RuleKind)
        assert editor.post(f"{ADD}{query}", {"name": "of no kind", "severity": "info"}).status_code == 200
    assert not AlertRule.objects.filter(name="of no kind").exists()


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        ("inbox", {"number": "-1"}, "Enter a value from 0 to 1,000,000."),
        ("inbox", {"number": "1.5"}, "Enter a whole number."),
        ("inbox", {"number": "nan"}, "Enter a number."),
        ("retry_share", {"number": "101"}, "Enter a value from 1 to 100."),
        ("not_started", {"seconds": "59s"}, "Enter a value from 1 min to 7 d."),
        ("not_started", {"seconds": "soon"}, "Write a number with a unit"),
        ("not_finished", {"at": "25:00"}, "Enter a time such as 06:30."),
        ("not_finished", {"at": ""}, "This field is required."),
        ("not_finished", {"schedule": ""}, "This field is required."),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(editor: Client, kind: str, values: dict[str, str], said: str) -> None:
    page = editor.post(f"{ADD}?kind={kind}", form_of(RuleKind(kind), **values))
    assert said in text_in(page)
    assert not AlertRule.objects.filter(name__startswith="new ").exists()


def test_the_list_says_in_words_when_and_whom_a_rule_tells(editor: Client) -> None:
    rule = AlertRuleFactory(kind="inbox", number=10, name="Inbox")
    assert "tells no channel" in text_in(editor.get(LIST))
    ChannelFactory(name="team", tells_by_default=True, least_severity="critical")
    assert "tells no channel" in text_in(editor.get(LIST))
    Channel.objects.update(least_severity="info")
    said = text_in(editor.get(LIST))
    assert "more than 10" in said
    assert "default channels: team" in said
    rule.channels.add(ChannelFactory(name="on call"))
    said = text_in(editor.get(LIST))
    assert "on call" in said
    assert "default channels" not in said
    AlertRule.objects.update(error="RuleProblem: the threshold")
    assert "cannot be evaluated" in text_in(editor.get(LIST))


def test_a_rule_is_muted_and_unmuted(editor: Client) -> None:
    rule = AlertRuleFactory()
    editor.post(address("alertrule", "mute", rule.pk), {"span": "1h", "reason": "The warehouse moves"})
    rule.refresh_from_db()
    assert rule.muted_until is not None
    assert clock.now() < rule.muted_until < clock.now() + timedelta(hours=2)
    assert "The warehouse moves" in text_in(editor.get(LIST))
    editor.post(address("alertrule", "unmute", rule.pk))
    rule.refresh_from_db()
    assert (rule.muted_until, rule.muted_by, rule.mute_reason) == (None, "", "")


def test_the_preview_says_what_a_rule_would_tell_and_records_nothing(editor: Client) -> None:
    rule = AlertRuleFactory(kind="inbox", number=1)
    page = address("alertrule", "would_tell", rule.pk)
    assert "It finds nothing now" in text_in(editor.get(page))
    FailedExecutionFactory.create_batch(2)
    assert "Failures in the inbox: 2" in text_in(editor.get(page))
    assert not rule.alerts.exists()
    AlertRule.objects.filter(pk=rule.pk).update(number=-5)
    assert "The threshold must be from 0" in text_in(editor.get(page))
    AlertRule.objects.filter(pk=rule.pk).update(kind="nonsense")
    assert "cannot evaluate the rule" in text_in(editor.get(page))


class TestGroups:
    """An editor of one group makes no rule that tells of another group."""

    @pytest.fixture
    def team(self) -> Group:
        return Group.objects.create(name="team")

    @pytest.fixture
    def others(self) -> Group:
        return Group.objects.create(name="others")

    @pytest.fixture
    def user(self, team: Group, others: Group) -> User:
        list(make_groups())
        SchedulerFactory(group=others)  # so that groups are in use
        user: User = UserFactory()
        user.groups.add(team, Group.objects.get(name=EDITOR))
        return user

    @pytest.fixture
    def client(self, user: User) -> Client:
        return logged_in(user)

    def test_a_new_rule_has_a_group_of_the_user(self, client: Client, team: Group, others: Group) -> None:
        kind = RuleKind.FAILED_IN_A_ROW
        for group in ("", others.pk):
            assert client.post(f"{ADD}?kind={kind.value}", form_of(kind, group=group)).status_code == 200
        assert not AlertRule.objects.filter(name=f"new {kind.value}").exists()
        assert client.post(f"{ADD}?kind={kind.value}", form_of(kind, group=team.pk)).status_code == 302
        assert AlertRule.objects.get(name=f"new {kind.value}").group == team
        whole = RuleKind.NO_PRODUCER
        client.post(f"{ADD}?kind={whole.value}", form_of(whole))
        assert not AlertRule.objects.filter(name=f"new {whole.value}").exists()

    def test_a_rule_cannot_be_moved_to_a_schedule_of_others(self, client: Client, team: Group, others: Group) -> None:
        kind, hidden, open_ = RuleKind.SKIPPED, SchedulerFactory(group=others), SchedulerFactory()
        for schedule in (hidden, open_):
            form = form_of(kind, group=team.pk, schedule=schedule.pk)
            assert client.post(f"{ADD}?kind={kind.value}", form).status_code == 200
        assert not AlertRule.objects.filter(name=f"new {kind.value}").exists()

    def test_rules_of_all_groups_are_read_only(self, client: Client, others: Group) -> None:
        rule, hidden = AlertRuleFactory(), AlertRuleFactory(group=others)
        client.post(address("alertrule", "change", rule.pk), {"name": "taken over", "severity": "info"})
        client.post(address("alertrule", "mute", rule.pk), {"span": "1h"})
        client.post(address("alertrule", "delete", rule.pk), {"post": "yes"})
        assert AlertRule.objects.filter(pk=rule.pk, name=rule.name, muted_until=None).exists()
        assert "only users who see all groups can look" in text_in(
            client.get(address("alertrule", "would_tell", rule.pk))
        )
        assert client.get(address("alertrule", "change", hidden.pk)).status_code == 302

    def test_channels_of_others_are_not_offered_and_stay(self, client: Client, team: Group, others: Group) -> None:
        rule = AlertRuleFactory(group=team, kind="skipped")
        hidden, own = ChannelFactory(name="zebra", group=others), ChannelFactory(group=team)
        rule.channels.add(hidden)
        page = address("alertrule", "change", rule.pk)
        assert "zebra" not in client.get(page).content.decode()
        form = {"name": "x", "severity": "info", "group": team.pk}
        assert client.post(page, {**form, "channels": [hidden.pk]}).status_code == 200
        assert client.post(page, {**form, "channels": [own.pk]}).status_code == 302
        assert set(rule.channels.all()) == {hidden, own}

    def test_a_channel_that_may_be_told_of_all_groups_is_read_only(self, client: Client, team: Group) -> None:
        shared = ChannelFactory(name="all")
        page = address("channel", "change", shared.pk)
        client.post(page, {"name": "all", "new_address": "json://chat.example.com/mine"})
        assert client.post(address("channel", "test", shared.pk)).status_code == 403
        assert Channel.objects.get(pk=shared.pk).address == shared.address
        form = {"name": "mine", "kind": "chat", "new_address": "json://chat.example.com/token"}
        assert client.post(address("channel", "add"), form).status_code == 200
        assert client.post(address("channel", "add"), {**form, "group": team.pk}).status_code == 302

    def test_a_group_of_an_alert_is_in_use(self, user: User, others: Group) -> None:
        """Otherwise a user without the permission would see the alerts of all groups."""
        from scheduling.models import Scheduler
        from scheduling.models.visibility import visibility_of

        Scheduler.objects.all().delete()
        assert not visibility_of(User.objects.get(pk=user.pk)).is_limited
        for make in (AlertFactory, AlertRuleFactory, ChannelFactory):
            row = make(group=others)
            assert visibility_of(User.objects.get(pk=user.pk)).is_limited
            row.delete()


def test_the_page_of_a_deletion_names_no_rows_between_a_rule_and_its_channels(editor: Client) -> None:
    rule = AlertRuleFactory()
    rule.channels.add(ChannelFactory(name="Team"))
    page = editor.get(f"{LIST}{rule.pk}/delete/")
    assert page.context["model_count"]
    assert [str(kind) for kind, _count in page.context["model_count"]] == [str(AlertRule._meta.verbose_name_plural)]
    assert "object (" not in page.content.decode()
    assert editor.post(f"{LIST}{rule.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not AlertRule.objects.filter(pk=rule.pk).exists()
