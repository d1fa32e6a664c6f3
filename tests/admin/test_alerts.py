"""The pages of alerts: the list, acknowledge, mute, and what each user sees of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.alerts.notices import tell_starts
from scheduling.core import delivery_sentences as say
from scheduling.models import Alert, AlertNotice, AlertRule, Channel
from tests.admin.conftest import logged_in
from tests.admin.pages import HOSTILE, address, text_in
from tests.factories import (
    AlertFactory,
    AlertMessageFactory,
    AlertNoticeFactory,
    AlertRuleFactory,
    ChannelFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db

LIST = "/admin/scheduling/alert/"


@pytest.fixture
def client() -> Client:
    """An operator who sees alerts, rules, schedules and runs."""
    rights = ("view_alert", "view_alertrule", "acknowledge_alert", "view_scheduler", "view_schedulerexecution")
    return logged_in(UserFactory(username="olga", permissions=[f"scheduling.{name}" for name in rights]))


def listed(client: Client, query: str = "") -> list[int]:
    return [row.pk for row in client.get(f"{LIST}{query}").context["cl"].result_list]


def test_the_list_begins_with_the_most_urgent_open_alert(client: Client) -> None:
    critical, info = AlertFactory(severity="critical"), AlertFactory(severity="info")
    warning, over = AlertFactory(severity="warning"), AlertFactory(over=True)
    acknowledged = AlertFactory(severity="info", acknowledged=True)
    assert listed(client) == [critical.pk, warning.pk, acknowledged.pk, info.pk]
    assert listed(client, "?state=over") == [over.pk]
    assert set(listed(client, "?state=all")) == {critical.pk, info.pk, warning.pk, over.pk, acknowledged.pk}
    assert listed(client, "?state=acknowledged") == [acknowledged.pk]
    assert listed(client, "?state=new&severity=warning") == [warning.pk]


def test_the_list_filters_and_searches(client: Client) -> None:
    schedule = SchedulerFactory()
    about = AlertFactory(schedule=schedule, subject="Import orders", kind="skipped")
    old = AlertFactory(started_at=clock.now() - timedelta(days=3))
    assert listed(client, f"?schedule={schedule.pk}") == [about.pk]
    assert listed(client, "?q=orders") == [about.pk]
    assert listed(client, "?kind=skipped") == [about.pk]
    assert listed(client, "?age=24h") == [about.pk]
    assert set(listed(client)) == {about.pk, old.pk}


def test_acknowledge_is_recorded_once_and_can_be_taken_back(client: Client) -> None:
    alert = AlertFactory()
    for _time in range(2):
        client.post(address("alert", "acknowledge", alert.pk))
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.acknowledged_at is not None) == ("olga", True)
    assert [entry.change_message for entry in LogEntry.objects.all()] == ["acknowledge"]
    assert "Acknowledged by olga" in text_in(client.get(address("alert", "change", alert.pk)))
    client.post(address("alert", "take_back", alert.pk))
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.acknowledged_at) == ("", None)


def test_an_alert_that_is_over_is_neither_acknowledged_nor_muted(client: Client) -> None:
    alert = AlertFactory(over=True)
    client.post(address("alert", "acknowledge", alert.pk))
    client.post(address("alert", "mute", alert.pk), {"span": "1h"})
    assert Alert.objects.filter(pk=alert.pk, acknowledged_at=None, muted_until=None).exists()
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(("span", "hours"), [("1h", 1), ("4h", 4)])
def test_a_muted_alert_is_told_when_the_mute_ends(client: Client, span: str, hours: int) -> None:
    ChannelFactory(tells_by_default=True)
    alert = AlertFactory()
    client.post(address("alert", "mute", alert.pk), {"span": span, "reason": "The warehouse\nmoves"})
    alert.refresh_from_db()
    until = clock.now() + timedelta(hours=hours)
    assert abs(alert.muted_until - until) < timedelta(minutes=5)
    assert (alert.muted_by, alert.mute_reason) == ("olga", "The warehouse moves")
    assert "Muted by olga until" in text_in(client.get(address("alert", "change", alert.pk)))
    tell_starts(clock.now())
    assert not AlertNotice.objects.exists()
    tell_starts(alert.muted_until)
    assert AlertNotice.objects.filter(alert=alert, event="start").count() == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"span": "at", "at": ""}, "Enter the time until which it is muted."),
        ({"span": "at", "at": "2020-01-01T10:00"}, "This time has passed."),
        ({"span": "at", "at": "2999-01-01T10:00"}, "At most 90 days."),
        ({"span": "for ever"}, "not one of the available choices"),
    ],
)
def test_a_mute_has_an_end_that_makes_sense(client: Client, data: dict[str, str], said: str) -> None:
    alert = AlertFactory()
    assert said in text_in(client.post(address("alert", "mute", alert.pk), data))
    assert Alert.objects.filter(pk=alert.pk, muted_until=None).exists()


def test_actions_of_the_list_change_the_ticked_alerts(client: Client) -> None:
    alerts = AlertFactory.create_batch(3)
    ticked = {"_selected_action": [row.pk for row in alerts[:2]]}
    client.post(LIST, {"action": "acknowledge_selected", **ticked})
    client.post(LIST, {"action": "mute_selected", "post": "yes", "span": "4h", **ticked})
    changed = Alert.objects.filter(acknowledged_by="olga", muted_by="olga")
    assert set(changed.values_list("pk", flat=True)) == {row.pk for row in alerts[:2]}
    client.post(LIST, {"action": "unmute_selected", **ticked})
    client.post(LIST, {"action": "take_back_selected", **ticked})
    assert not Alert.objects.exclude(muted_until=None, acknowledged_at=None).exists()


def test_the_page_tells_each_message_and_why_it_was_not_sent(client: Client) -> None:
    schedule = SchedulerFactory(description="Import orders")
    run = SchedulerExecutionFactory(scheduler=schedule)
    alert = AlertFactory(schedule=schedule, execution=run.pk)
    AlertNoticeFactory(alert=alert, message=AlertMessageFactory(channel=ChannelFactory(name="team")))
    AlertNoticeFactory(alert=alert, message=AlertMessageFactory(waiting=True))
    AlertNoticeFactory(alert=alert, message=AlertMessageFactory(given_up=True))
    other = say.OTHER_GROUP.format()
    aside = AlertMessageFactory(channel=ChannelFactory(name="former"), state="aside", error=other)
    AlertNoticeFactory(alert=alert, message=aside)
    said = text_in(client.get(address("alert", "change", alert.pk)))
    for words in (
        "team was told.",
        "3, 1 without an answer",
        "The webhook answered 500: no text",
        "set aside",
        f"former was not told. {other}",
        "Import orders",
        f"no. {run.pk}",
    ):
        assert words in said
    assert "not sent yet" in text_in(client.get(LIST))


def test_the_number_of_queries_of_the_list_does_not_depend_on_the_alerts(client: Client) -> None:
    numbers = []
    for _time in range(2):
        for _number in range(5):
            AlertNoticeFactory()
        with CaptureQueriesContext(connection) as captured:
            client.get(LIST)
        numbers.append(len(captured))
    assert numbers[0] == numbers[1]


def test_pages_show_the_open_alerts_of_a_schedule_and_of_a_run(client: Client) -> None:
    schedule = SchedulerFactory()
    run = SchedulerExecutionFactory(scheduler=schedule, succeeded=True)
    pages = address("scheduler", "change", schedule.pk), address("schedulerexecution", "change", run.pk)
    for page in pages:
        with CaptureQueriesContext(connection) as captured:
            assert "Failures in the inbox" not in client.get(page).content.decode()
        assert sum("scheduling_alert" in sql and "seen" in sql for sql in (query["sql"] for query in captured)) == 1
    AlertFactory(schedule=schedule, execution=run.pk)
    AlertFactory(schedule=schedule, execution=run.pk, over=True)
    for page in pages:
        assert client.get(page).content.decode().count("Failures in the inbox: 12") == 1


def test_texts_of_rows_cannot_change_a_page(client: Client) -> None:
    texts = {"subject": HOSTILE[:200], "seen": HOSTILE, "advice": HOSTILE, "rule_name": HOSTILE[:100]}
    alert = AlertFactory(schedule=SchedulerFactory(), mute_reason=HOSTILE, muted=True, **texts)
    AlertNoticeFactory(
        alert=alert, message=AlertMessageFactory(given_up=True, error=HOSTILE, channel=ChannelFactory(name=HOSTILE))
    )
    for page in (LIST, address("alert", "change", alert.pk), address("scheduler", "change", alert.schedule_id)):
        body = client.get(page).content.decode()
        assert "<script>alert" not in body
        assert "\u202e" not in body


def test_without_a_channel_the_pages_say_how_to_be_told(client: Client) -> None:
    AlertRuleFactory()
    for page in (LIST, "/admin/scheduling/alertrule/"):
        assert "Add a channel" in text_in(client.get(page))
    ChannelFactory()
    assert "Add a channel" in text_in(client.get(LIST))
    Channel.objects.update(tells_by_default=True)
    for page in (LIST, "/admin/scheduling/alertrule/"):
        assert "Add a channel" not in text_in(client.get(page))
    AlertRule.objects.update(enabled=False)
    assert "Add a channel" in text_in(client.get(LIST))


def test_a_rule_that_names_a_channel_keeps_it() -> None:
    root: Any = logged_in(UserFactory(superuser=True))
    channel = ChannelFactory()
    rule = AlertRuleFactory(name="Inbox of the shop")
    rule.channels.add(channel)
    page = address("channel", "delete", channel.pk)
    assert "The alert rule “Inbox of the shop” sends to it." in root.get(page).content.decode()
    root.post(page, {"post": "yes"})
    assert Channel.objects.filter(pk=channel.pk).exists()
