"""What the page of a channel says about its use, and what a test says on a site that sends no e-mails."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.test import Client
from django.urls import reverse

from scheduling.models import AlertRule, Channel
from tests.admin.conftest import said
from tests.factories import AlertRuleFactory, ChannelFactory, GroupFactory
from tests.notify.mail_server import mail_server, use

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_rules(db: None) -> None:
    AlertRule.objects.all().delete()


def used_by(client: Client, row: Channel) -> str:
    page = BeautifulSoup(
        client.get(reverse("admin:scheduling_channel_change", args=[row.pk])).content, "html.parser"
    ).select_one(".field-used_by .readonly")
    assert page is not None
    return " ".join(page.get_text(" ").split())


def test_a_default_channel_says_how_many_rules_it_is_told_of(viewer: Client) -> None:
    row, plain = ChannelFactory(tells_by_default=True), ChannelFactory()
    assert used_by(viewer, plain) == "Nothing uses it."
    default = "Told by default: rules that name no channel use it. Number of rules: "
    assert used_by(viewer, row) == f"{default}0."
    AlertRuleFactory(name="one", severity="warning")
    AlertRuleFactory(name="two", severity="info")
    AlertRuleFactory(name="off", enabled=False)
    AlertRuleFactory(name="other").channels.add(plain)
    assert used_by(viewer, row) == f"{default}2."
    Channel.objects.filter(pk=row.pk).update(least_severity="warning")
    assert used_by(viewer, row) == f"{default}1."
    AlertRuleFactory(name="named").channels.add(row)
    assert used_by(viewer, row) == f"{default}1. Also used by: named"
    assert used_by(viewer, plain) == "other"


def test_the_rules_of_other_groups_do_not_count(viewer: Client) -> None:
    own, other = GroupFactory(), GroupFactory()
    row = ChannelFactory(tells_by_default=True, group=own)
    AlertRuleFactory(name="one", group=own)
    AlertRuleFactory(name="two", group=other)
    from scheduling.admin.channels.uses import links_to_uses

    assert str(links_to_uses(row)).endswith("Number of rules: 1.")


def test_a_default_channel_that_no_row_names_can_be_deleted(editor: Client) -> None:
    row = ChannelFactory(tells_by_default=True)
    AlertRuleFactory()
    delete = reverse("admin:scheduling_channel_delete", args=[row.pk])
    assert editor.post(delete, {"post": "yes"}).status_code == 302
    assert not Channel.objects.exists()


def test_a_test_on_a_site_that_prints_its_mails_says_so(editor: Client, settings: Any) -> None:
    row = ChannelFactory(name="Team", email=True)
    address = reverse("admin:scheduling_channel_test", args=[row.pk])
    (text,) = said(editor.post(address, follow=True))
    assert text.startswith(
        "This site prints or keeps e-mails instead of sending them, so “Team” gets none. Set EMAIL_URL"
    )
    with mail_server() as mailbox:
        use(settings, mailbox)
        assert said(editor.post(address, follow=True)) == ["The message was sent to “Team”."]
        assert len(mailbox.accepted) == 2
