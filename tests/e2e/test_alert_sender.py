"""A process that is killed while it sends, or that stops while a server hangs; the command for a crontab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from scheduling.models import AlertMessage, Channel
from scheduling.models.alert_watch import AlertWatch
from tests.alerts.support import alert, channel, told
from tests.notify.chat_server import ChatServer, chat_server
from tests.notify.mail_server import mail_server
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

QUICK = {"CRON_ALERTS_SECONDS": "1", "CRON_LEASE_SECONDS": "3"}


@pytest.fixture
def receiver() -> Iterator[ChatServer]:
    with chat_server() as found:
        yield found


def webhook(receiver: ChatServer) -> Channel:
    return channel(f"http://{receiver.host}/", kind="webhook", secret="s" * 40)


def evaluate(commands: Commands, receiver: ChatServer, **environment: str) -> dict[str, Any]:
    """Run the command, and return its JSON."""
    code, output = commands.run(
        "evaluate_alerts", "--json", **QUICK, CRON_INTERNAL_HOSTS=receiver.host, **environment
    )  # fmt: skip
    document: dict[str, Any] = json.loads(output.splitlines()[-1])
    assert code == (0 if document["evaluated"] or "Another" in document["text"] else 1), output
    return document


def test_a_killed_sender_is_followed_by_one_repetition(commands: Commands, receiver: ChatServer) -> None:
    told(webhook(receiver), alert(1))
    receiver.silence = 60.0
    first = commands.start("evaluate_alerts", **QUICK, CRON_INTERNAL_HOSTS=receiver.host)
    wait_for(lambda: receiver.arrived, "the message is on its way")
    first.kill()
    first.wait()
    receiver.silence = 0.0
    assert AlertMessage.objects.get().state == "sending"
    # After the lease of the killed process, the message still counts as being sent.
    wait_for(lambda: evaluate(commands, receiver)["evaluated"], "another process evaluates")
    assert len(receiver.arrived) == 1
    AlertMessage.objects.update(next_try_at=timezone.now() - timedelta(seconds=1))  # 90 s later
    for _turn in range(2):
        assert evaluate(commands, receiver)["evaluated"]
    before, after = (json.loads(body) for _path, _headers, body in receiver.arrived)
    assert (before["may_be_repeated"], after["may_be_repeated"]) == (False, True)
    assert before["id"] == after["id"] == AlertMessage.objects.get().delivery_id
    message = AlertMessage.objects.get()
    assert (message.state, message.tries, message.repeats) == ("sent", 2, 1)


def test_a_mail_server_that_hangs_does_not_keep_a_process_from_stopping(
    commands: Commands, receiver: ChatServer
) -> None:
    with mail_server() as mailbox:
        mailbox.hangs = True
        told(channel("", kind="email", recipients="anna@example.com"), alert(1))
        mail = {"EMAIL_URL": f"smtp://127.0.0.1:{mailbox.port}", "CRON_LEASE_SECONDS": "60"}  # it waits for 20 s
        producer = commands.start("run_scheduler", **{**QUICK, **mail})
        wait_for(lambda: mailbox.accepted, "the mail server hangs")
        assert commands.stop(producer, seconds=10) == 0, commands.log(producer)
        assert AlertMessage.objects.get().state == "sending", "it has not waited for the mail server"
        assert AlertWatch.objects.get().until == 0, "the next process may evaluate"
    assert evaluate(commands, receiver)["evaluated"]


def test_the_switch(commands: Commands, receiver: ChatServer) -> None:
    told(webhook(receiver), alert(1))
    off = {**QUICK, "CRON_ALERTS": "off", "CRON_INTERNAL_HOSTS": receiver.host}
    producer = commands.start("run_scheduler", **off)
    commands.ready(producer)
    assert evaluate(commands, receiver, CRON_ALERTS="off")["evaluated"], "the command works in any case"
    assert len(receiver.arrived) == 1
    assert commands.stop(producer) == 0


def test_another_process_evaluates(commands: Commands, receiver: ChatServer) -> None:
    AlertWatch.objects.update_or_create(
        pk=1, defaults={"holder": "other", "until": int(timezone.now().timestamp()) + 9}
    )
    document = evaluate(commands, receiver)
    assert not document["evaluated"]
    assert "Another process" in document["text"]


@pytest.mark.any_database
def test_a_database_that_is_away_or_not_migrated(
    commands: Commands, receiver: ChatServer, free_port: int, tmp_path: Path
) -> None:
    urls = [f"sqlite:///{tmp_path}/new.sqlite3", f"postgres://postgres@127.0.0.1:{free_port}/none"]
    for url in urls:
        document = evaluate(commands, receiver, DATABASE_URL=url)
        assert not document["evaluated"]
        assert document["text"].startswith("The alerts cannot be evaluated: ")
