"""A reminder reaches each recipient, in the schedule's language, and a retry sends nothing twice without saying so."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from scheduling.models import Attempt, Notification, SchedulerExecution
from tests.admin.conftest import logged_in
from tests.factories import ManualExecutionFactory, ReminderFactory, SchedulerFactory, UserFactory
from tests.notify.kill import kill_while_it_sends
from tests.notify.mail_server import Mailbox, mail_server
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("REMINDER_KILLS", "5"))
SEED = int(os.environ.get("FUZZ_SEED", "20261123"))


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """Provide a mail server."""
    with mail_server() as found:
        yield found


def consumer(commands: Commands, mailbox: Mailbox, *arguments: str, **environment: str) -> Any:
    """Start a consumer that sends its mail to the mailbox."""
    return commands.start(
        "run_worker", *arguments, EMAIL_URL=f"smtp://127.0.0.1:{mailbox.port}", DEFAULT_FROM_EMAIL="cron@example.com",
        **environment,
    )  # fmt: skip


def reminder_run(**columns: Any) -> SchedulerExecution:
    """Return a queued run of a schedule with a new reminder."""
    options = {
        name: columns.pop(name) for name in ("language", "timezone", "max_retries", "retry_delay_ms") if name in columns
    }
    reminder = ReminderFactory(**columns)
    schedule = SchedulerFactory(rare=True, worker=None, reminder=reminder, **options)
    return ManualExecutionFactory(scheduler=schedule, params={"place": "Room 4"})


def records(execution: SchedulerExecution) -> dict[str, tuple[str, int, int]]:
    """Return the state, the tries and the unsure tries of each recipient."""
    rows = Notification.objects.filter(execution=execution)
    return {row.recipient: (row.state, row.tries, row.unsure) for row in rows}


def test_twenty_recipients_get_it_in_the_language_of_the_schedule(commands: Commands, mailbox: Mailbox) -> None:
    addresses = [f"user{number}@example.com" for number in range(17)]
    execution = reminder_run(
        subject="{{ reminder.name }} am {{ occurrence.at|date:'l' }}", body="{{ params.place }}, {{ recipient.name }}",
        html="<b>{{ params.place }}</b>", recipients="\n".join([*addresses, "ANNA@example.com"]),
        language="de", timezone="Europe/Berlin",
    )  # fmt: skip
    reminder = execution.scheduler.reminder
    anna = UserFactory(username="anna", email="anna@example.com", first_name="Anna", last_name="Ö")
    team = Group.objects.create(name="team")
    members = [UserFactory(username=f"member{number}", email=f"m{number}@example.com") for number in range(2)]
    team.user_set.add(anna, *members, UserFactory(username="gone", email="gone@example.com", is_active=False))
    reminder.users.add(anna)
    reminder.groups.add(team)
    worker = consumer(commands, mailbox, "--max-runs", "1")
    assert worker.wait(90) == 0, commands.log(worker)
    assert SchedulerExecution.objects.get(pk=execution.pk).state == "succeeded"
    expected = Counter([*addresses, "anna@example.com", "m0@example.com", "m1@example.com"])
    assert Counter(address for address, _message in mailbox.accepted) == expected
    (message,) = mailbox.to("anna@example.com")
    weekdays = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")
    assert message["Subject"].removeprefix(f"{reminder.name} am ") in weekdays
    text, html = (part.get_payload(decode=True).decode().strip() for part in message.walk() if not part.is_multipart())
    assert (text, html) == ("Room 4, Anna Ö", "<b>Room 4</b>")
    assert set(records(execution).values()) == {("sent", 1, 0)}


def test_a_refused_address_fails_alone_and_visibly(commands: Commands, mailbox: Mailbox) -> None:
    mailbox.answers = {"gone@example.com": "550 no such user"}
    execution = reminder_run(recipients="gone@example.com\nben@example.com")
    execution.scheduler.reminder.users.add(UserFactory(username="quiet", email=""))
    worker = consumer(commands, mailbox, "--max-runs", "1")
    assert worker.wait(90) == 0, commands.log(worker)
    assert [address for address, _message in mailbox.accepted] == ["ben@example.com"]
    execution.refresh_from_db()
    assert execution.state == "failed"
    assert "2 of 3 recipients cannot get the message." in execution.error_message
    assert "gone@example.com: The mail server answered 550: no such user" in execution.error_message
    assert "The user quiet has no e-mail address." in execution.error_message
    client: Client = logged_in(UserFactory(superuser=True))
    page = client.get(f"/admin/scheduling/schedulerexecution/{execution.pk}/change/").content.decode()
    assert "ben@example.com" in page
    assert "The mail server answered 550: no such user" in page


def test_a_retry_sends_only_what_is_left(commands: Commands, mailbox: Mailbox) -> None:
    mailbox.answers = {"full@example.com": "452 mailbox full"}
    execution = reminder_run(recipients="ben@example.com\nfull@example.com", max_retries=2, retry_delay_ms=1000)
    worker = consumer(commands, mailbox)
    wait_for(lambda: Attempt.objects.filter(execution=execution).count() == 1, "the first attempt fails")
    mailbox.answers = {}
    wait_for(lambda: SchedulerExecution.objects.get(pk=execution.pk).state == "succeeded", "the retry succeeds")
    assert commands.stop(worker) == 0
    assert Counter(address for address, _message in mailbox.accepted) == {"ben@example.com": 1, "full@example.com": 1}
    assert records(execution) == {"ben@example.com": ("sent", 1, 0), "full@example.com": ("sent", 2, 0)}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"body": "{% for a in params.b %}"}, "text: Unclosed tag"),
        ({"body": "{% include 'x' %}"}, "Invalid block tag"),
        ({"recipients": ""}, "There is no recipient"),
    ],
)
def test_a_reminder_that_cannot_be_sent_fails_at_once(
    commands: Commands, mailbox: Mailbox, columns: dict[str, str], said: str
) -> None:
    execution = reminder_run(**{"recipients": "ben@example.com", **columns})
    worker = consumer(commands, mailbox, "--max-runs", "1")
    assert worker.wait(90) == 0, commands.log(worker)
    execution.refresh_from_db()
    assert (execution.state, execution.attempt) == ("failed", 1)
    assert said in execution.error_message
    assert mailbox.accepted == []


def test_a_consumer_that_is_killed_sends_each_recipient_at_least_one_copy(commands: Commands, mailbox: Mailbox) -> None:
    """A second copy is sent only if a kill came between the sending and its record. It has the same Message-ID."""
    chance = random.Random(SEED)
    print(f"FUZZ_SEED={SEED}, REMINDER_KILLS={KILLS}")  # noqa: T201 - to repeat a failure
    addresses = [f"user{number}@example.com" for number in range(20)]
    copies = 0
    for _kill in range(KILLS):
        mailbox.accepted.clear()
        execution = reminder_run(recipients="\n".join(addresses), max_retries=5, retry_delay_ms=1000)
        start = partial(consumer, commands, mailbox, CRON_LEASE_SECONDS="3")
        kill_while_it_sends(commands, start, execution, mailbox.accepted, chance.uniform(0, 0.06))
        rows = records(execution)
        assert {state for state, _tries, _unsure in rows.values()} == {"sent"}
        for address in addresses:
            got = mailbox.to(address)
            assert 1 <= len(got) <= 1 + rows[address][2], address
            assert len({message["Message-ID"] for message in got}) == 1
        copies += len(mailbox.accepted) - len(addresses)
        assert sum(unsure for _state, _tries, unsure in rows.values()) <= 1
    print(f"{KILLS} kills, {copies} second copies")  # noqa: T201
