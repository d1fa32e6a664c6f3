"""Tests of the pages of reminders: their texts and recipients are checked, shown and tried before they are sent."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.core import mail
from django.test import Client
from django.urls import reverse

from scheduling.admin.executions.recipients import SHOWN
from scheduling.models import Notification, Reminder
from scheduling.operations.audit import read
from tests.admin.conftest import said
from tests.factories import ChannelFactory, ReminderFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory

pytestmark = pytest.mark.django_db

ADD = "/admin/scheduling/reminder/add/"


def change(row: Reminder) -> str:
    return reverse("admin:scheduling_reminder_change", args=[row.pk])


def fields(**given: Any) -> dict[str, Any]:
    return {"name": "n", "subject": "s", "body": "", "html": "", "recipients": "a@example.com", "params": "{}", **given}


def errors(client: Client, **given: Any) -> str:
    page = client.post(ADD, fields(**given))
    lists = BeautifulSoup(page.content, "html.parser").select(".errorlist")
    return " ".join(found.get_text(" ", strip=True) for found in lists)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"subject": "{% load x %}"}, "Invalid block tag on line 1: 'load'."),
        ({"body": "{% for a in b %}"}, "Unclosed tag on line 1: 'for'"),
        ({"html": "{{ a|center:9 }}"}, "Invalid filter: 'center'"),
        ({"body": "x" * 20_001}, "The template has more than 20000 characters."),
        ({"recipients": "a@example.com\nno address"}, "Not an e-mail address: “no address”."),
        ({"recipients": "x" * 250 + "@example.com"}, "Not an e-mail address"),
        ({"recipients": ""}, "Give at least one recipient."),
        ({"recipients": "\n".join(f"a{n}@example.com" for n in range(1_001))}, "At most 1000 addresses."),
    ],
)
def test_what_cannot_be_sent_is_refused_at_the_field(editor: Client, given: dict[str, str], sentence: str) -> None:
    assert sentence in errors(editor, **given)
    assert not Reminder.objects.exists()


def test_users_and_groups_are_recipients_enough(editor: Client) -> None:
    user, group = UserFactory(), Group.objects.create(name="team")
    assert editor.post(ADD, fields(recipients="", users=[user.pk], groups=[group.pk])).status_code == 302
    row = Reminder.objects.get()
    assert (list(row.users.all()), list(row.groups.all())) == ([user], [group])


def test_the_preview_is_the_letter_of_the_first_schedule(editor: Client) -> None:
    row = ReminderFactory(
        subject="{{ reminder.name }}", html="<b>{{ params.place }}</b>", params={"place": "a <room>"},
        body="{{ schedule.description }} in {{ params.place }}, {{ schedule.timezone }}, {{ occurrence.at|date:'F' }}",
    )  # fmt: skip
    SchedulerFactory(
        worker=None, reminder=row, description="Stand-up at ten", timezone="Asia/Tokyo", language="de",
        schedule="0 9 1 3 *",
    )  # fmt: skip
    soup = BeautifulSoup(editor.get(change(row)).content, "html.parser")
    text = soup.find(attrs={"aria-labelledby": "sch-preview"}).get_text()
    assert "As you would get it from “Stand-up at ten”." in text
    assert "Stand-up at ten in a <room>, Asia/Tokyo, März" in text  # in the language of the schedule
    assert "<b>a &lt;room&gt;</b>" in text


def test_a_preview_that_cannot_be_written_says_why(editor: Client) -> None:
    row = ReminderFactory(body="{% for a in params.list %}{{ a }}{% endfor %}", params={"list": list(range(20_000))})
    assert "text: The text has more than 10000 steps." in editor.get(change(row)).content.decode()
    Reminder.objects.filter(pk=row.pk).update(body="{% debug %}", params=[])  # plain SQL can write anything
    assert "text: Invalid block tag" in editor.get(change(row)).content.decode()


def test_a_test_goes_to_the_user_alone(editor: Client, viewer: Client) -> None:
    row = ReminderFactory(body="Hello {{ recipient.name }}")
    address = reverse("admin:scheduling_reminder_test", args=[row.pk])
    assert viewer.post(address).status_code == 403
    assert editor.get(address).status_code == 405
    user = User.objects.get(pk=editor.session["_auth_user_id"])
    User.objects.filter(pk=user.pk).update(email="")
    assert said(editor.post(address, follow=True)) == ["Your account has no e-mail address."]
    User.objects.filter(pk=user.pk).update(email="me@example.com", first_name="Ed")
    assert said(editor.post(address, follow=True)) == ["It was sent to me@example.com."]
    (message,) = mail.outbox
    assert (message.to, message.body) == (["me@example.com"], "Hello Ed")
    assert not Notification.objects.exists()


def test_a_mail_server_that_fails_is_told(editor: Client, settings: Any) -> None:
    row = ReminderFactory()
    user = User.objects.get(pk=editor.session["_auth_user_id"])
    User.objects.filter(pk=user.pk).update(email="me@example.com")
    settings.EMAIL_BACKEND, settings.EMAIL_HOST, settings.EMAIL_PORT = (
        "django.core.mail.backends.smtp.EmailBackend", "127.0.0.1", 1,
    )  # fmt: skip
    (text,) = said(editor.post(reverse("admin:scheduling_reminder_test", args=[row.pk]), follow=True))
    assert text.startswith("It was not sent. The mail server cannot be used: ")


def test_the_page_of_a_run_names_each_recipient(viewer: Client) -> None:
    run = SchedulerExecutionFactory(succeeded=True, scheduler=SchedulerFactory(of_reminder=True), attempt=2)
    common = {"execution": run, "kind": "email", "message_id": "<x@y>", "changed_at": run.finished_at}

    def record(number: int, state: str, **columns: Any) -> None:
        facts = {"recipient": f"r{number}@example.com", "key": str(number), "attempt": 1, "tries": 1, **columns}
        Notification.objects.create(state=state, **facts, **common)

    record(1, "sent")
    record(2, "refused", error="The mail server answered 550: <no> such user")
    record(3, "sent", unsure=1, tries=2)
    record(4, "sending")
    soup = BeautifulSoup(viewer.get(f"/admin/scheduling/schedulerexecution/{run.pk}/change/").content, "html.parser")
    lines = [" ".join(line.get_text(" ").split()) for line in soup.find(id="recipients").tbody.find_all("tr")]
    assert lines[0].startswith("r2@example.com refused")
    assert lines[0].endswith("The mail server answered 550: <no> such user")
    assert lines[1].endswith("The attempt ended before the server answered. The next attempt sends it again.")
    assert "r3@example.com sent" in lines[3]
    assert "because 1 try ended without an answer of the server" in lines[3]
    assert "All copies have the same Message-ID." in lines[3]
    for number in range(10, SHOWN + 20):
        record(number, "sent")
    text = viewer.get(f"/admin/scheduling/schedulerexecution/{run.pk}/change/").content.decode()
    assert "and 14 more" in text


def test_the_parameters_of_a_reminder_are_any_json(editor: Client) -> None:
    row = ReminderFactory()
    page = BeautifulSoup(editor.get(reverse("admin:scheduling_reminder_run", args=[row.pk])).content, "html.parser")
    assert "It takes no parameters." not in page.get_text()
    assert page.find("textarea", attrs={"name": "params"}) is not None


def test_other_channels_are_chosen_and_recorded(editor: Client) -> None:
    reminder, channels = ReminderFactory(), [ChannelFactory(name=name) for name in ("night shift", "day shift")]
    for chosen, wanted in ((channels[:1], ["", "night shift"]), (channels, ["night shift", "day shift, night shift"])):
        assert editor.post(change(reminder), fields(channels=[row.pk for row in chosen])).status_code == 302
        assert set(reminder.channels.all()) == {*chosen}
        edits = read(LogEntry.objects.order_by("pk").last())[1]
        assert [[edit.old or "", edit.new] for edit in edits if edit.name == "channels"] == [wanted]
