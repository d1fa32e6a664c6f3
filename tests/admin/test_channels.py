"""The address of a channel is write-only, a channel in use stays, and a test goes to the channel alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import django
import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.db.models import ProtectedError
from django.test import Client
from django.urls import reverse

from scheduling.models import Channel, Notification, Reminder, SchedulerExecution
from tests.admin.addresses import every_address
from tests.admin.audit import entry_line
from tests.admin.conftest import logged_in, said
from tests.admin.rows import one_of_each
from tests.admin.walk import text_of
from tests.factories import ChannelFactory, NotificationFactory, ReminderFactory, SchedulerFactory, UserFactory
from tests.notify.chat_addresses import ADDRESSES
from tests.notify.chat_server import ChatServer, chat_server

pytestmark = pytest.mark.django_db

LIST, ADD = "/admin/scheduling/channel/", "/admin/scheduling/channel/add/"
SECRET = "hunter2-is-the-token"
ADDRESS = f"jsons://user:{SECRET}@chat.example.com/{SECRET}-path"


def change(row: Channel) -> str:
    return reverse("admin:scheduling_channel_change", args=[row.pk])


def fields(**given: Any) -> dict[str, Any]:
    return {"name": "Team", "description": "", "new_address": "", **given}


def errors(response: Any) -> str:
    lists = BeautifulSoup(response.content, "html.parser").select(".errorlist")
    return " ".join(found.get_text(" ", strip=True) for found in lists)


def entries() -> list[str]:
    return [entry_line(entry) for entry in LogEntry.objects.order_by("pk")]


@pytest.fixture
def chat(settings: Any) -> Iterator[ChatServer]:
    """Provide a chat server that messages can reach, although it runs on this machine."""
    with chat_server() as found:
        settings.CRON_INTERNAL_HOSTS = found.host
        yield found


def test_an_address_is_set_kept_and_replaced(editor: Client) -> None:
    assert editor.post(ADD, fields(new_address=ADDRESS)).status_code == 302
    row = Channel.objects.get()
    assert row.address == ADDRESS
    assert editor.post(change(row), fields(description="the team")).status_code == 302
    row.refresh_from_db()
    assert (row.address, row.description) == (ADDRESS, "the team")
    assert editor.post(change(row), fields(new_address=f" {ADDRESSES['slack']} ")).status_code == 302
    row.refresh_from_db()
    assert row.address == ADDRESSES["slack"]
    assert editor.post(reverse("admin:scheduling_channel_delete", args=[row.pk]), {"post": "yes"}).status_code == 302
    added, changed, replaced, deleted = entries()
    assert "address: (empty) -> set" in added
    assert "address" not in changed
    assert "address: set -> set anew" in replaced
    assert "address" not in deleted
    text = str(list(LogEntry.objects.values_list("change_message", "object_repr")))
    assert SECRET not in text
    assert "TIiajkdnlazkcOXrIdevi7Q" not in text


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("", "This field is required."),
        (f"syslog://{SECRET}", "This kind of address is not possible."),
        (f"json://{SECRET}@localhost", "localhost has the internal address"),
        (f"slack://{SECRET}", "This is not a complete address for Slack."),
        (f"{ADDRESS}?verify=no", "an option that is not possible here"),
        (f"mailto://{SECRET}@example.com", "Further addresses"),
        ("${SECRET_KEY}", "must look like ${CRON_CHAT_TEAM}"),
        ("json://" + "a" * 3_000, "at most 2000 characters"),
        (f"json://a/\x00{SECRET}", "Null characters are not allowed."),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_at_the_field(editor: Client, address: str, sentence: str) -> None:
    response = editor.post(ADD, fields(new_address=address))
    assert sentence in errors(response)
    assert SECRET not in response.content.decode()
    assert not Channel.objects.exists()
    row = ChannelFactory(name="Team")
    if address:
        response = editor.post(change(row), fields(new_address=address))
        assert sentence in errors(response)
        assert SECRET not in response.content.decode()
    row.refresh_from_db()
    assert row.address == "json://127.0.0.1:9/channel-token"


@pytest.mark.any_database  # what a page shows of this column does not depend on the database
def test_no_page_shows_the_address(editor: Client, viewer: Client, settings: Any, tmp_path: Any) -> None:
    """Every address of the site is requested, with the secret in every channel, by three users."""
    settings.MEDIA_ROOT = tmp_path
    rows = one_of_each()
    for row in rows["channel"]:
        Channel.objects.filter(pk=row.pk).update(address=ADDRESS)
        editor.post(change(row), fields(name=f"Renamed {row.pk}", new_address=f"slack://{SECRET}"))
        editor.post(change(row), fields(name=f"Renamed {row.pk}", new_address=ADDRESS))
        editor.post(reverse("admin:scheduling_channel_test", args=[row.pk]))
    root = logged_in(UserFactory(username="root", superuser=True))
    autocomplete = "/admin/autocomplete/?app_label=scheduling&model_name=reminder&field_name=channels&term="
    paths = {address.path for address in every_address(rows) if address.name != "logout"}
    paths |= {autocomplete, f"{LIST}?q=slack", f"{LIST}?o=3", f"{LIST}?o=-1.2.3"}
    for client in (root, editor, viewer):
        for path in sorted(paths):
            text = text_of(client.get(path))
            assert SECRET not in text, path
            assert "chat.example.com" not in text, path
    page = viewer.get(change(rows["channel"][0])).content.decode()
    assert "is set: jsons://…" in page
    assert 'type="password"' not in page
    assert "jsons://…" in editor.get(LIST).content.decode()


@pytest.mark.parametrize(
    "path",
    [
        f"{LIST}?address__startswith=json",
        f"{LIST}?address={ADDRESS}",
        f"{LIST}?address__regex=.",
        "/admin/scheduling/reminder/?channels__address__startswith=json",
        "/admin/scheduling/scheduler/?reminder__channels__address__startswith=json",
    ],
)
def test_no_list_can_be_filtered_by_the_address(path: str) -> None:
    channel, reminder = ChannelFactory(), ReminderFactory()
    reminder.channels.add(channel)
    SchedulerFactory(worker=None, reminder=reminder)
    root = logged_in(UserFactory(username="root", superuser=True))
    response = root.get(path)
    assert response.status_code in (302, 400)  # Django answers to a forbidden filter as to an unknown one
    assert "e=1" in response.get("Location", "e=1")


def test_a_search_does_not_look_at_the_address(editor: Client) -> None:
    ChannelFactory(name="Team", address=ADDRESS)
    assert "Team" not in editor.get(f"{LIST}?q={SECRET}").content.decode()
    assert "Team" in editor.get(f"{LIST}?q=tea").content.decode()


def test_a_report_of_an_error_has_no_address(
    editor: Client, settings: Any, mailoutbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django mails a report with the posted values to ADMINS, and the variables of each function."""
    import logging

    from django.utils.log import AdminEmailHandler

    from scheduling.admin.channels import form

    def broken(*_arguments: Any, **_options: Any) -> None:
        raise RuntimeError("the disk is full")

    settings.ADMINS = ["admin@example.com"] if django.VERSION >= (6,) else [("admin", "admin@example.com")]
    handler = AdminEmailHandler(include_html=True)
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)
    monkeypatch.setattr(form, "check_address", broken)
    editor.raise_request_exception = False
    try:
        assert editor.post(ADD, fields(new_address=ADDRESS)).status_code == 500
    finally:
        logger.removeHandler(handler)
    (message,) = mailoutbox
    assert "the disk is full" in message.body
    assert "new_address" in message.body
    assert SECRET not in message.body
    assert SECRET not in str(message.alternatives)


def test_a_test_goes_to_the_channel(editor: Client, viewer: Client, chat: ChatServer) -> None:
    row = ChannelFactory(name="Team", address=f"json://{chat.host}/{SECRET}")
    address = reverse("admin:scheduling_channel_test", args=[row.pk])
    assert viewer.post(address).status_code == 403
    assert "Send a test" not in viewer.get(change(row)).content.decode()
    assert editor.get(address).status_code == 405
    assert Client(enforce_csrf_checks=True, headers={}).post(address).status_code in (302, 403)
    assert chat.arrived == []
    assert "Send a test" in editor.get(change(row)).content.decode()
    assert said(editor.post(address, follow=True)) == ["The message was sent to “Team”."]
    assert len(chat.arrived) == 1
    assert "Test of the channel “Team”".encode("unicode_escape")[:20] in chat.arrived[0][2]
    assert entries() == ["test sent"]
    assert not Notification.objects.exists()


def test_a_test_that_fails_says_why_without_the_secret(editor: Client, chat: ChatServer) -> None:
    row = ChannelFactory(address=f"json://{chat.host}/{SECRET}?+X-Token={SECRET}")
    chat.status, chat.echo = 500, True
    page = editor.post(reverse("admin:scheduling_channel_test", args=[row.pk]), follow=True)
    (text,) = said(page)
    assert text.startswith("It was not sent. The chat server answered 500: ")
    assert SECRET not in page.content.decode()
    assert entries() == ["test failed"]


def test_a_server_that_hangs_does_not_hold_the_web_process(editor: Client, chat: ChatServer, settings: Any) -> None:
    settings.CRON_LEASE_SECONDS = 3
    chat.silence = 6  # after this time, the server would answer that all is well
    row = ChannelFactory(address=f"json://{chat.host}/hook")
    (text,) = said(editor.post(reverse("admin:scheduling_channel_test", args=[row.pk]), follow=True))
    assert text == "The message may have arrived. The chat server did not answer within 2 s."


def test_a_channel_in_use_cannot_be_deleted(editor: Client) -> None:
    channel, reminder = ChannelFactory(name="Team"), ReminderFactory(name="Stand-up")
    reminder.channels.add(channel)
    assert "Stand-up" in editor.get(change(channel)).content.decode()
    delete = reverse("admin:scheduling_channel_delete", args=[channel.pk])
    for response in (editor.get(delete), editor.post(delete, {"post": "yes"})):
        assert "The reminder “Stand-up” sends to it. Remove the channel" in response.content.decode()
    action = {"action": "delete_selected", "_selected_action": [channel.pk], "post": "yes"}
    assert "The reminder “Stand-up” sends to it. Remove the channel" in editor.post(LIST, action).content.decode()
    with pytest.raises(ProtectedError):
        Channel.objects.all().delete()
    assert Channel.objects.exists()
    reminder.delete()  # the reminder can go, and then the channel
    assert editor.post(delete, {"post": "yes"}).status_code == 302
    assert not Channel.objects.exists()


def test_a_channel_is_recipient_enough(editor: Client) -> None:
    channel = ChannelFactory()
    common = {"name": "n", "subject": "s", "body": "", "html": "", "recipients": "", "params": "{}"}
    add = "/admin/scheduling/reminder/add/"
    assert "Give at least one recipient." in errors(editor.post(add, common))
    many = [ChannelFactory().pk for _ in range(51)]
    assert "At most 50 channels." in errors(editor.post(add, {**common, "channels": many}))
    assert editor.post(add, {**common, "channels": [channel.pk]}).status_code == 302
    assert list(Reminder.objects.get().channels.all()) == [channel]


def test_the_page_of_a_run_says_that_a_chat_may_show_it_twice(viewer: Client) -> None:
    run: SchedulerExecution = NotificationFactory(
        execution__type="reminder", kind="chat", recipient="Team", message_id="", tries=2, unsure=1,
        execution=one_run(),
    ).execution  # fmt: skip
    page = viewer.get(f"/admin/scheduling/schedulerexecution/{run.pk}/change/").content
    (line,) = BeautifulSoup(page, "html.parser").find(id="recipients").tbody.find_all("tr")
    text = " ".join(line.get_text(" ").split())
    assert text.startswith("Team sent")
    assert text.endswith("without an answer of the server. The chat may show the message more than once.")
    assert "Message-ID" not in text


def one_run() -> SchedulerExecution:
    from tests.factories import SchedulerExecutionFactory

    return SchedulerExecutionFactory(succeeded=True, scheduler=SchedulerFactory(of_reminder=True))


def test_without_the_extra_the_page_says_what_to_install(editor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduling.admin.channels import admin as pages
    from scheduling.notify import chat as sender

    monkeypatch.setattr(pages, "IS_INSTALLED", False)
    monkeypatch.setattr(sender, "IS_INSTALLED", False)
    row = ChannelFactory()
    page = editor.get(change(row)).content.decode()
    assert "pip install &#x27;cronsite[notify]&#x27;" in page
    assert "Send a test" not in page
    assert "pip install 'cronsite[notify]'" in errors(editor.post(ADD, fields(new_address=ADDRESS)))
