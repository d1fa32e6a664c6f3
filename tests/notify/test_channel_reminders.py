"""A reminder reaches channels of each kind. A retry sends only what is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scheduling.core.outcome import NonRetryableError, RetryableError
from scheduling.models import Channel, Notification, SchedulerExecution
from scheduling.notify.signature import verify
from scheduling.workers.reminder import ReminderParams, send
from tests.factories import ChannelFactory, ManualExecutionFactory, ReminderFactory, SchedulerFactory
from tests.notify.chat_server import ChatServer
from tests.notify.mail_server import Mailbox, mail_server, use
from tests.reports.support import run_of
from tests.support import lax_sql

pytestmark = pytest.mark.django_db


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    """Provide a mail server that Django's settings name."""
    with mail_server() as found:
        use(settings, found)
        yield found


def execution_with(*channels: Channel, recipients: str = "") -> SchedulerExecution:
    """Return a running execution of a reminder to these channels."""
    reminder = ReminderFactory(
        name="stand-up", subject="Stand-up in {{ params.place }}", body="At ten.", recipients=recipients
    )
    reminder.channels.add(*channels)
    schedule = SchedulerFactory(rare=True, worker=None, reminder=reminder, description="each morning")
    return ManualExecutionFactory(scheduler=schedule, state="running", attempt=1)


def attempt(execution: SchedulerExecution, number: int = 1) -> None:
    """Run the handler of the reminder, as the given attempt."""
    run = run_of(
        execution, attempt=number, retry_count=number - 1, type="reminder", target_id=execution.scheduler.reminder_id,
        scheduler_id=execution.scheduler_id, scheduled_at=execution.scheduled_at,
    )  # fmt: skip
    send(ReminderParams.model_validate({"place": "Room 4"}), run)


def states(execution: SchedulerExecution) -> dict[str, tuple[str, str]]:
    rows = Notification.objects.filter(execution=execution)
    return {row.recipient: (row.kind, row.state) for row in rows}


def test_a_webhook_gets_the_facts_of_the_reminder(chat: ChatServer) -> None:
    hook = ChannelFactory(name="hook", webhook=True, address=f"http://{chat.host}/hook")
    execution = execution_with(hook)
    attempt(execution)
    ((_path, headers, body),) = chat.arrived
    verify(body, headers["CRON-Signature"], hook.secret)
    found = json.loads(body)
    schedule = found.pop("schedule")
    assert (schedule["id"], schedule["cron"]) == (execution.scheduler_id, execution.scheduler.schedule)
    assert found.pop("sent_at")
    assert found == {
        "version": 1, "id": headers["CRON-Delivery"], "event": "reminder", "subject": "Stand-up in Room 4",
        "text": "At ten.", "reminder": {"id": execution.scheduler.reminder_id, "name": "stand-up"},
        "execution_key": execution.execution_key, "due_at": execution.scheduled_at.isoformat(), "trigger": "manual",
        "params": {"place": "Room 4"},
    }  # fmt: skip
    assert states(execution) == {"hook": ("webhook", "sent")}
    assert Notification.objects.get().message_id == headers["CRON-Delivery"]


def test_a_channel_of_addresses_is_its_addresses(mailbox: Mailbox) -> None:
    first = ChannelFactory(email=True, recipients="anna@example.com\nBen@example.com")
    second = ChannelFactory(email=True, recipients="ben@example.com\ncarl@example.com\n")
    execution = execution_with(first, second, recipients="ANNA@example.com")
    attempt(execution)
    accepted = [address for address, _message in mailbox.accepted]
    assert accepted == ["ANNA@example.com", "Ben@example.com", "carl@example.com"]
    assert states(execution) == dict.fromkeys(accepted, ("email", "sent"))


def test_a_retry_has_the_same_delivery_id_and_waits_as_the_server_wants(chat: ChatServer, mailbox: Mailbox) -> None:
    chat.answers, chat.headers = {"busy": 429, "slow": 503}, {"Retry-After": "90"}
    busy = ChannelFactory(name="busy", webhook=True, address=f"http://{chat.host}/busy")
    fine = ChannelFactory(name="fine", webhook=True, address=f"http://{chat.host}/fine")
    team = ChannelFactory(name="team", email=True, recipients="anna@example.com\nben@example.com")
    mailbox.answers = {"ben@example.com": "452 full"}
    execution = execution_with(busy, fine, team)
    with pytest.raises(RetryableError, match="2 of 4 recipients did not get the message") as later:
        attempt(execution)
    assert later.value.retry_after == 90
    chat.answers, mailbox.answers = {}, {}
    attempt(execution, 2)
    assert (len(chat.at("/busy")), len(chat.at("/fine"))) == (2, 1)
    assert [address for address, _message in mailbox.accepted] == ["anna@example.com", "ben@example.com"]
    deliveries = [headers["CRON-Delivery"] for path, headers, _body in chat.arrived]
    assert len({*deliveries}) == 2
    assert {state for _kind, state in states(execution).values()} == {"sent"}


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"kind": "nonsense"}, "The channel has no known kind."),
        ({"kind": "email", "recipients": None}, "The channel has no e-mail address."),
        ({"kind": "email", "recipients": "x" * 300}, "This is not an e-mail address: "),
        ({"kind": "email", "recipients": "\n".join(f"{n}@example.com" for n in range(500))}, "has more than 100"),
        ({"kind": "webhook", "address": "\u202e", "secret": ""}, "a character that must be percent-encoded"),
        ({"kind": "webhook", "secret": ""}, "The webhook has no secret."),
    ],
)
def test_a_channel_that_plain_sql_has_changed_holds_back_no_other_one(
    chat: ChatServer, mailbox: Mailbox, columns: dict[str, Any], says: str
) -> None:
    bad = ChannelFactory(name="bad", webhook=True)
    fine = ChannelFactory(name="fine", webhook=True, address=f"http://{chat.host}/fine")
    execution = execution_with(bad, fine, recipients="anna@example.com")
    with lax_sql():
        Channel.objects.filter(pk=bad.pk).update(**columns)
    with pytest.raises(NonRetryableError, match="1 of 3 recipients cannot get the message") as failed:
        attempt(execution)
    assert says in str(failed.value)
    assert len(chat.at("/fine")) == 1
    assert len(mailbox.to("anna@example.com")) == 1
