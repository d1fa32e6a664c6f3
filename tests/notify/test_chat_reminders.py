"""A reminder reaches chats beside its e-mails. Each channel is a recipient with a record of its own."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from scheduling.models import Attempt, Notification, Output, SchedulerExecution
from tests.factories import ChannelFactory, ManualExecutionFactory, ReminderFactory, SchedulerFactory
from tests.notify.chat_server import ChatServer, chat_server
from tests.notify.kill import kill_while_it_sends
from tests.notify.mail_server import Mailbox, mail_server
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

KILLS = int(os.environ.get("REMINDER_KILLS", "3"))
SEED = int(os.environ.get("FUZZ_SEED", "20261124"))
SECRET = "hunter2-is-the-token"


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """Provide a chat server."""
    with chat_server() as found:
        yield found


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """Provide a mail server."""
    with mail_server() as found:
        yield found


def consumer(commands: Commands, chat: ChatServer, *arguments: str, mail: int = 1, **environment: str) -> Any:
    """Start a consumer that may send to the chat server, although it runs on this machine."""
    return commands.start(
        "run_worker", *arguments, EMAIL_URL=f"smtp://127.0.0.1:{mail}", DEFAULT_FROM_EMAIL="cron@example.com",
        CRON_INTERNAL_HOSTS=chat.host, **environment,
    )  # fmt: skip


def reminder_run(addresses: list[str], recipients: str = "", **columns: Any) -> SchedulerExecution:
    """Return a queued run of a schedule with a new reminder. The channels are named after their order."""
    reminder = ReminderFactory(
        subject="{{ reminder.name }}", body="{{ params.place }} for {{ recipient.name }}", recipients=recipients
    )
    reminder.channels.add(*(ChannelFactory(name=f"room {n}", address=text) for n, text in enumerate(addresses)))
    schedule = SchedulerFactory(rare=True, worker=None, reminder=reminder, **columns)
    return ManualExecutionFactory(scheduler=schedule, params={"place": "Room 4"})


def records(execution: SchedulerExecution) -> dict[str, tuple[str, str, int, int]]:
    """Return the kind, the state, the tries and the unsure tries of each recipient."""
    rows = Notification.objects.filter(execution=execution)
    return {row.recipient: (row.kind, row.state, row.tries, row.unsure) for row in rows}


def everything_stored(execution: SchedulerExecution) -> str:
    """Return all texts that the run has left behind."""
    rows = [
        *SchedulerExecution.objects.filter(pk=execution.pk).values(),
        *Attempt.objects.filter(execution=execution).values(),
        *Notification.objects.filter(execution=execution).values(),
        *Output.objects.filter(execution=execution).values(),
    ]
    return str(rows)


def test_channels_and_addresses_get_the_message(commands: Commands, chat: ChatServer, mailbox: Mailbox) -> None:
    host = chat.host
    execution = reminder_run(
        [f"json://{host}/{SECRET}", f"mmost://{host}/{'3ccdd113474722377935511fc85d3dd4'}", "${CRON_CHAT_TEAM}"],
        "ben@example.com",
    )
    worker = consumer(
        commands, chat, "--max-runs", "1", mail=mailbox.port, CRON_CHAT_TEAM=f"json://{host}/env-{SECRET}",
        LOG_LEVEL="DEBUG",
    )  # fmt: skip
    assert worker.wait(90) == 0, commands.log(worker)
    assert SchedulerExecution.objects.get(pk=execution.pk).state == "succeeded"
    assert [address for address, _message in mailbox.accepted] == ["ben@example.com"]
    assert b"Room 4 for room 0" in chat.at(f"/{SECRET}")[0]
    assert b"Room 4 for room 2" in chat.at(f"/env-{SECRET}")[0]
    assert len(chat.arrived) == 3
    sent = dict.fromkeys(("room 0", "room 1", "room 2"), ("chat", "sent", 1, 0))
    assert records(execution) == {"ben@example.com": ("email", "sent", 1, 0), **sent}
    assert SECRET not in everything_stored(execution)
    assert SECRET not in commands.log(worker)


def test_a_refused_chat_fails_alone_and_visibly(commands: Commands, chat: ChatServer) -> None:
    chat.answers, chat.echo = {"gone": 404}, True
    execution = reminder_run(
        [f"json://{chat.host}/gone-{SECRET}", f"json://{chat.host}/fine", f"json://127.0.0.1:1/{SECRET}", "syslog://"]
    )
    worker = consumer(commands, chat, "--max-runs", "1", LOG_LEVEL="DEBUG")
    assert worker.wait(90) == 0, commands.log(worker)
    execution.refresh_from_db()
    assert execution.state == "failed"
    assert "3 of 4 recipients cannot get the message. room 0: The chat server answered 404: " in execution.error_message
    assert "room 2: 127.0.0.1 has the internal address 127.0.0.1." in execution.error_message
    assert "room 3: This kind of address is not possible." in execution.error_message
    assert [path for path, _headers, _body in chat.arrived] == [f"/gone-{SECRET}", "/fine"]
    assert SECRET not in everything_stored(execution)
    assert SECRET not in commands.log(worker)


def test_a_retry_sends_only_to_the_chats_that_are_left(commands: Commands, chat: ChatServer, mailbox: Mailbox) -> None:
    """A mail server that cannot be reached holds back no chat, and a chat that is busy holds back no other one."""
    chat.answers = {"busy": 503}
    execution = reminder_run(
        [f"json://{chat.host}/busy", f"json://{chat.host}/fine"], "a@example.com\nb@example.com",
        max_retries=2, retry_delay_ms=1000,
    )  # fmt: skip
    worker = consumer(commands, chat)  # nothing listens at the port of the mail server
    wait_for(lambda: Attempt.objects.filter(execution=execution).count() == 1, "the first attempt fails")
    assert commands.stop(worker) == 0
    assert records(execution)["room 1"] == ("chat", "sent", 1, 0)
    chat.answers = {}
    worker = consumer(commands, chat, mail=mailbox.port)
    wait_for(lambda: SchedulerExecution.objects.get(pk=execution.pk).state == "succeeded", "the retry succeeds")
    assert commands.stop(worker) == 0
    assert len(chat.at("/busy")) == 2
    assert len(chat.at("/fine")) == 1
    assert len(mailbox.accepted) == 2


def test_a_chat_that_hangs_holds_back_no_other_one(commands: Commands, chat: ChatServer) -> None:
    with chat_server() as other:
        chat.silence = 8  # after this time, it would answer that all is well
        rooms = [f"json://{chat.host}/{number}" for number in range(3)]
        execution = reminder_run([*rooms, f"json://{other.host}/fine"], max_retries=0)
        worker = commands.start(
            "run_worker", "--max-runs", "1", CRON_INTERNAL_HOSTS=f"{chat.host},{other.host}", CRON_LEASE_SECONDS="3"
        )
        assert worker.wait(90) == 0, commands.log(worker)
        assert len(other.arrived) == 1
    states = {name: (state, tries) for name, (_kind, state, tries, _unsure) in records(execution).items()}
    assert states == {**{f"room {number}": ("sending", 1) for number in range(3)}, "room 3": ("sent", 1)}
    execution.refresh_from_db()
    assert "3 of 4 recipients did not get the message." in execution.error_message
    assert "The chat server did not answer within 2 s." in execution.error_message


def test_a_consumer_that_is_killed_sends_to_each_chat_at_least_once(commands: Commands, chat: ChatServer) -> None:
    """A second message is sent only if a kill came between the sending and its record, and the record counts it."""
    chance = random.Random(SEED)
    print(f"FUZZ_SEED={SEED}, REMINDER_KILLS={KILLS}")  # noqa: T201 - to repeat a failure
    copies = 0
    chat.silence = 0.03
    for _kill in range(KILLS):
        chat.arrived.clear()
        rooms = [f"json://{chat.host}/{number}" for number in range(20)]
        execution = reminder_run(rooms, max_retries=5, retry_delay_ms=1000)
        start = partial(consumer, commands, chat, CRON_LEASE_SECONDS="3")
        kill_while_it_sends(commands, start, execution, chat.arrived, chance.uniform(0, 0.5))
        rows = records(execution)
        assert {state for _kind, state, _tries, _unsure in rows.values()} == {"sent"}
        for number in range(20):
            unsure = rows[f"room {number}"][3]
            assert 1 <= len(chat.at(f"/{number}")) <= 1 + unsure, number
        copies += len(chat.arrived) - len(rooms)
        assert sum(unsure for *_facts, unsure in rows.values()) <= 1
        for room in execution.scheduler.reminder.channels.all():
            room.reminders.clear()
            room.delete()
    print(f"{KILLS} kills, {copies} second copies")  # noqa: T201
