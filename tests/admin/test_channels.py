"""The address of a channel is write-only, a channel in use stays, and a test goes to the channel alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import django
import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.db.models import PROTECT, ProtectedError
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.channels.test_message import MOST_TESTS, WINDOW
from scheduling.models import Channel, Notification, Reminder, SchedulerExecution
from scheduling.models.channel import owners_of_channels
from scheduling.notify.signature import verify
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
    return {"name": "Team", "description": "", "kind": "chat", "new_address": "", **given}


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
        (f"mailto://{SECRET}@example.com", "Choose the kind"),
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


@pytest.mark.slow
@pytest.mark.any_database  # what a page shows of this column does not depend on the database
def test_no_page_shows_the_address(editor: Client, viewer: Client, settings: Any, tmp_path: Any) -> None:
    """Every address of the site is requested, with the secret in every channel, by three users."""
    settings.MEDIA_ROOT = tmp_path
    rows = one_of_each()
    for row in rows["channel"]:
        Channel.objects.filter(pk=row.pk).update(address=ADDRESS, secret=f"{SECRET}-of-the-webhook")
        editor.post(change(row), fields(name=f"Renamed {row.pk}", new_address=f"slack://{SECRET}"))
        typed = fields(name=f"Renamed {row.pk}", new_secret=f"{SECRET}-again", recipients="team@example.com")
        for address in (ADDRESS, f"https://chat.example.com/{SECRET}"):
            editor.post(change(row), {**typed, "new_address": address})
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
        f"{LIST}?secret__startswith=cron",
        "/admin/scheduling/reminder/?channels__secret__startswith=cron",
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


@pytest.mark.parametrize(("kind", "check"), [("chat", "check_address"), ("webhook", "webhook.check_url")])
def test_a_report_of_an_error_has_no_address(
    editor: Client, settings: Any, mailoutbox: Any, monkeypatch: pytest.MonkeyPatch, kind: str, check: str
) -> None:
    """Django mails a report with the posted values to ADMINS, and the variables of each function."""
    import logging

    from django.utils.log import AdminEmailHandler

    def broken(*_arguments: Any, **_options: Any) -> None:
        raise RuntimeError("the disk is full")

    settings.ADMINS = ["admin@example.com"] if django.VERSION >= (6,) else [("admin", "admin@example.com")]
    handler = AdminEmailHandler(include_html=True)
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)
    monkeypatch.setattr(f"scheduling.admin.channels.form.{check}", broken)
    editor.raise_request_exception = False
    try:
        assert editor.post(ADD, fields(kind=kind, new_address=ADDRESS, new_secret=f"{SECRET}-signs")).status_code == 500
    finally:
        logger.removeHandler(handler)
    (message,) = mailoutbox
    assert "the disk is full" in message.body
    assert "new_address" in message.body
    assert "new_secret" in message.body
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


def test_the_page_of_a_run_says_that_a_webhook_can_recognise_a_copy(viewer: Client) -> None:
    run: SchedulerExecution = NotificationFactory(
        kind="webhook", recipient="Hook", message_id="reminder-7-abc", tries=2, unsure=1, execution=one_run()
    ).execution
    page = viewer.get(f"/admin/scheduling/schedulerexecution/{run.pk}/change/").content.decode()
    assert "The webhook may have more than one copy. All copies have the same delivery id." in page


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


def shown_secret(response: Any) -> str:
    """Return the secret that the page shows; empty if it shows none."""
    found = BeautifulSoup(response.content, "html.parser").select_one(".sch-once code")
    return found.get_text() if found is not None else ""


HOOK = {"kind": "webhook", "new_address": f"https://hooks.example.com/{SECRET}"}


def test_the_secret_of_a_webhook_is_made_and_shown_once(editor: Client, viewer: Client) -> None:
    response = editor.post(ADD, fields(**HOOK))
    row, made = Channel.objects.get(), shown_secret(response)
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert (row.secret, row.address, row.kind) == (made, HOOK["new_address"], "webhook")
    assert len(made) > 40
    assert editor.post(change(row), fields(description="kept")).status_code == 302
    row.refresh_from_db()
    assert (row.secret, row.description) == (made, "kept")
    again = shown_secret(editor.post(change(row), fields(make_secret="on")))
    row.refresh_from_db()
    assert again == row.secret != made
    typed = "a-secret-of-our-own"
    assert editor.post(change(row), fields(new_secret=f" {typed} ")).status_code == 302
    row.refresh_from_db()
    assert row.secret == typed
    assert editor.post(change(row), fields(new_secret="${CRON_WEBHOOK_SECRET}")).status_code == 302
    for client in (editor, viewer):
        page = client.get(change(row)).content.decode()
        assert "is set: ${CRON_WEBHOOK_SECRET}" in page
        assert not {made, again, typed, SECRET} & {*page.split('"'), *page.split()}
    assert 'type="password"' not in viewer.get(change(row)).content.decode()
    text = str(list(LogEntry.objects.values_list("change_message", "object_repr")))
    assert "secret: (empty) -> set" in entries()[0]
    assert "secret" not in entries()[1]
    assert "secret: set -> set anew" in entries()[2]
    for secret in (made, again, typed, SECRET):
        assert secret not in text


@pytest.mark.parametrize(
    ("given", "field", "sentence"),
    [
        ({"new_address": ""}, "new_address", "This field is required."),
        ({"new_address": f"slack://{SECRET}/x/y"}, "new_address", "must begin with https:// or http://"),
        ({"new_address": f"http://{SECRET}@127.1/"}, "new_address", "has the internal address 127.0.0.1"),
        ({"new_address": f"https://[{SECRET}/"}, "new_address", "names no host"),
        ({"new_address": "${SECRET_KEY}"}, "new_address", "must look like ${CRON_CHAT_TEAM}"),
        ({"new_secret": "hunter2-is"}, "new_secret", "16 to 200 ASCII characters"),
        ({"new_secret": f"{SECRET} with spaces"}, "new_secret", "16 to 200 ASCII characters"),
        ({"new_secret": f"{SECRET}" * 20}, "new_secret", "at most 200 characters"),
        ({"new_secret": "${DATABASE_URL}"}, "new_secret", "must look like ${CRON_CHAT_TEAM}"),
        ({"kind": "email", "recipients": ""}, "recipients", "Give at least one e-mail address."),
        ({"kind": "email", "recipients": "a@example.com\nb"}, "recipients", "Not an e-mail address: “b”."),
        ({"kind": "email", "recipients": "a@example.com\n" * 101}, "recipients", "At most 100 addresses."),
        ({"kind": "carrier pigeon"}, "kind", "Select a valid choice."),
        ({"kind": ""}, "kind", "This field is required."),
    ],
)
def test_what_the_kind_needs_is_asked_at_its_field(
    editor: Client, given: dict[str, str], field: str, sentence: str
) -> None:
    response = editor.post(ADD, fields(**{**HOOK, **given}))
    assert list(response.context["adminform"].form.errors) == [field]
    assert sentence in errors(response)
    assert SECRET not in response.content.decode()
    assert not Channel.objects.exists()


def test_a_secret_is_typed_or_made_but_not_both(editor: Client) -> None:
    row = ChannelFactory(webhook=True)
    response = editor.post(change(row), fields(new_secret="a-secret-of-our-own", make_secret="on"))
    assert "Type a secret or have one made, not both." in errors(response)
    row.refresh_from_db()
    assert row.secret == "cronhook_of_the_tests"


def test_values_of_another_kind_are_left_out(editor: Client) -> None:
    """The page hides the fields of the other kinds, so an error there would not be seen."""
    typed = {
        "new_address": "nonsense",
        "new_secret": "x",
        "make_secret": "on",
        "recipients": "a@example.com\n\nb@x.org",
    }
    assert editor.post(ADD, fields(**{**typed, "kind": "email"})).status_code == 302
    row = Channel.objects.get()
    assert (row.kind, row.address, row.secret, row.recipients) == ("email", "", "", "a@example.com\nb@x.org")
    typed |= {"name": "Hook", "new_address": "https://example.com/x", "new_secret": "", "recipients": "nonsense"}
    assert shown_secret(editor.post(ADD, fields(**{**typed, "kind": "webhook"})))
    row = Channel.objects.get(name="Hook")
    assert (row.recipients, row.address) == ("", "https://example.com/x")
    assert editor.post(ADD, fields(**{**typed, "name": "Room", "new_address": ADDRESS})).status_code == 302
    row = Channel.objects.get(name="Room")
    assert (row.kind, row.recipients, row.secret) == ("chat", "", "")


def test_a_stored_channel_keeps_its_kind(editor: Client) -> None:
    row = ChannelFactory(email=True)
    page = editor.get(change(row)).content.decode()
    assert 'name="kind"' not in page
    assert 'name="new_address"' not in page
    assert editor.post(change(row), fields(kind="webhook", recipients="new@example.com")).status_code == 302
    row.refresh_from_db()
    assert (row.kind, row.recipients) == ("email", "new@example.com")
    assert "recipients: team@example.com\nben@example.com -> new@example.com" in entries()[0]


def test_the_list_says_where_each_channel_goes(viewer: Client) -> None:
    for name, traits in (("a", {}), ("b", {"webhook": True}), ("c", {"email": True})):
        ChannelFactory(name=name, **traits)
    table = BeautifulSoup(viewer.get(LIST).content, "html.parser").find(id="result_list").tbody
    columns = ".field-shown_kind, .field-goes_to"
    lines = [[cell.get_text(" ", strip=True) for cell in row.select(columns)] for row in table.find_all("tr")]
    assert lines == [["chat", "json://…"], ["webhook", "https://…"], ["e-mail addresses", "team@example.com +1"]]
    assert "team@example.com +1" in viewer.get(f"{LIST}?q=ben@example").content.decode()


def test_a_test_goes_through_each_kind(editor: Client, chat: ChatServer, mailoutbox: Any) -> None:
    hook = ChannelFactory(name="Hook", webhook=True, address=f"http://{chat.host}/{SECRET}")
    assert said(editor.post(reverse("admin:scheduling_channel_test", args=[hook.pk]), follow=True)) == [
        "The message was sent to “Hook”."
    ]
    ((_path, headers, body),) = chat.arrived
    verify(body, headers["CRON-Signature"], hook.secret)
    facts = json.loads(body)
    assert (facts["event"], facts["id"], facts["channel"]) == (
        "test", headers["CRON-Delivery"], {"id": hook.pk, "name": "Hook"},
    )  # fmt: skip
    chat.status, chat.headers = 302, {"Location": f"http://127.0.0.1:1/{SECRET}"}
    page = editor.post(reverse("admin:scheduling_channel_test", args=[hook.pk]), follow=True)
    assert said(page)[0].startswith("It was not sent. The webhook answered 302.")
    assert SECRET not in page.content.decode()
    team = ChannelFactory(name="Team", email=True)
    editor.post(reverse("admin:scheduling_channel_test", args=[team.pk]), follow=True)
    assert [message.to for message in mailoutbox] == [["team@example.com"], ["ben@example.com"]]
    assert entries() == ["test sent", "test failed", "test failed"]  # this site keeps its e-mails


def test_tests_are_too_few_to_map_a_network(editor: Client, chat: ChatServer) -> None:
    """The limit is one of the user, for all channels together, and a deleted channel counts."""
    for number in range(MOST_TESTS):
        row = ChannelFactory(address=f"json://{chat.host}/{number}")
        assert said(editor.post(reverse("admin:scheduling_channel_test", args=[row.pk]), follow=True))[0].startswith(
            "The"
        )
        row.delete()
    row = ChannelFactory(address=f"json://{chat.host}/{SECRET}")
    address = reverse("admin:scheduling_channel_test", args=[row.pk])
    for _again in range(2):
        assert said(editor.post(address, follow=True)) == [
            "It was not sent. You have sent 5 tests within a minute. Wait a minute."
        ]
    assert (len(chat.arrived), entries()) == (MOST_TESTS, ["test sent"] * MOST_TESTS)
    LogEntry.objects.update(action_time=clock.now() - WINDOW)
    assert said(editor.post(address, follow=True))[0].startswith("The message was sent")


@pytest.mark.parametrize(
    "columns",
    [
        {"kind": "nonsense\u202e"}, {"kind": ""}, {"kind": "email", "recipients": None},
        {"kind": "email", "recipients": "\x1b[1m\u202e" * 50_000}, {"kind": "email", "recipients": "<b>@\n" * 5_000},
        {"kind": "webhook", "secret": ""}, {"kind": "webhook", "address": "\u202e://", "secret": "\x1b" * 200},
        {"kind": "chat", "address": "", "secret": "x", "recipients": "y"},
    ],
)  # fmt: skip
def test_columns_that_plain_sql_has_written_break_no_page(editor: Client, viewer: Client, columns: Any) -> None:
    row, reminder = ChannelFactory(), ReminderFactory()
    reminder.channels.add(row)
    Channel.objects.filter(pk=row.pk).update(**columns)
    for client in (editor, viewer):
        for path in (LIST, change(row), reverse("admin:scheduling_reminder_change", args=[reminder.pk])):
            response = client.get(path)
            assert response.status_code == 200
            if client is viewer or path == LIST:  # a form keeps the stored text
                assert "\u202e" not in response.content.decode()
    text = said(editor.post(reverse("admin:scheduling_channel_test", args=[row.pk]), follow=True))[0]
    assert text.startswith("It was not sent. ")
    # The form can mend each of them.
    mended = fields(kind="email", new_address="https://example.com/x", recipients="a@example.com")
    if columns["kind"] == "chat":
        mended["new_address"] = ADDRESS
    assert editor.post(change(row), mended).status_code in (200, 302)
    row.refresh_from_db()
    assert row.kind in Channel.Kind.values
    assert row.address or row.recipients == "a@example.com"
    assert row.kind != "webhook" or len(row.secret) > 16


def test_all_that_sends_to_channels_protects_them() -> None:
    """Whatever model names channels: without this, a channel would vanish from it, unnoticed."""
    owners = owners_of_channels()
    assert (Reminder, "channels") in owners
    for model, field in owners:
        links: Any = model._meta.get_field(field).remote_field.through
        assert links._meta.get_field("channel").remote_field.on_delete is PROTECT, f"{model.__name__}.{field}"
