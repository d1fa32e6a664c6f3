"""Messages of alerts: grouped, retried, given up, repeated once at most. A bad row or a slow channel stops no other."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from scheduling.alerts.letter import TEXT_CHARS
from scheduling.core.alert_retry import GIVEN_UP_AFTER, LONGEST_SECONDS, SENDING_SECONDS
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertMessage, AlertNotice
from tests.alerts.support import Clock, alert, channel, no_threads, send_all, sender, states, told
from tests.notify.chat_server import ChatServer, chat_server
from tests.notify.mail_server import mail_server, use
from tests.support import wait_for

pytestmark = pytest.mark.django_db

MANY = int(os.environ.get("TEST_MANY_ALERTS", "2000"))
"""The full volume is 10,000."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def slow_chat(settings: Any, chat: ChatServer) -> Iterator[ChatServer]:
    """A second server, which answers no sooner than a message may take."""
    settings.CRON_LEASE_SECONDS = 3
    with chat_server() as found:
        settings.CRON_INTERNAL_HOSTS = f"{chat.host},{found.host}"
        found.silence = 3.5
        yield found


def texts(server: ChatServer) -> list[str]:
    return [str(json.loads(body)["message"]) for _path, _headers, body in server.arrived]


def test_many_alerts_are_one_message(chat: ChatServer, clock: Clock) -> None:
    team = channel(f"json://{chat.host}/")
    told(team, *(alert(number) for number in range(MANY - 1)), alert(MANY, severity="critical"))
    send_all(sender(clock))
    assert states() == ["sent"]
    (text,) = texts(chat)
    assert text.startswith("CRITICAL: "), "the most urgent one comes first"
    assert text.endswith(f"and {MANY - 20} more")
    assert not AlertNotice.objects.filter(message=None).exists()


def test_what_piles_up_becomes_the_next_message(chat: ChatServer, clock: Clock) -> None:
    team, by = channel(f"json://{chat.host}/"), sender(clock)
    chat.status = 503
    told(team, alert(1))
    send_all(by)
    told(team, alert(2))
    told(team, alert(3, ended_at=clock.now()), event="end")
    send_all(by)
    assert states() == ["waiting"]
    chat.status = 200
    clock.pass_seconds(LONGEST_SECONDS)
    send_all(by)
    send_all(by)
    assert states() == ["sent", "sent"]
    assert [len(text.split("\n\n")) for text in texts(chat)[-2:]] == [1, 2]


def test_an_error_for_a_day(chat: ChatServer, clock: Clock) -> None:
    team, by = channel(f"json://{chat.host}/"), sender(clock)
    chat.status = 500
    told(team, alert(1))
    since = clock.now()
    while clock.now() - since < GIVEN_UP_AFTER + timedelta(hours=1):
        send_all(by)
        clock.pass_seconds(LONGEST_SECONDS)
    assert states() == ["given_up"]
    message = AlertMessage.objects.get()
    assert "500" in message.error
    assert message.tries == len(chat.arrived) < 120
    chat.status = 200
    told(team, alert(2))
    send_all(by)
    assert states() == ["given_up", "sent"]


def test_the_server_says_when_to_come_again(chat: ChatServer, clock: Clock) -> None:
    team = channel(f"http://{chat.host}/", kind="webhook", secret="s" * 40)
    told(team, alert(1))
    by = sender(clock)
    chat.status, chat.headers["Retry-After"] = 429, "120"
    send_all(by)
    clock.pass_seconds(119)
    send_all(by)
    assert len(chat.arrived) == 1
    clock.pass_seconds(1)
    send_all(by)
    assert len(chat.arrived) == 2


def test_an_address_that_has_the_message_gets_it_once(settings: Any, clock: Clock) -> None:
    with mail_server() as mailbox:
        use(settings, mailbox)
        told(channel("", kind="email", recipients="anna@example.com\nben@example.com"), alert(1))
        by = sender(clock)
        mailbox.answers["ben@example.com"] = "451 busy"
        send_all(by)
        assert states() == ["waiting"]
        assert AlertMessage.objects.get().done == ["anna@example.com"]
        del mailbox.answers["ben@example.com"]
        clock.pass_seconds(LONGEST_SECONDS)
        send_all(sender(clock))  # another process
        assert states() == ["sent"]
        assert [address for address, _message in mailbox.accepted] == ["anna@example.com", "ben@example.com"]


def test_without_an_answer_a_message_is_sent_once_more_and_says_so(slow_chat: ChatServer, clock: Clock) -> None:
    team, by = channel(f"json://{slow_chat.host}/"), sender(clock)
    told(team, alert(1))
    for _try in range(4):
        send_all(by)
        clock.pass_seconds(LONGEST_SECONDS)
    assert states() == ["given_up"]
    first, second = texts(slow_chat)
    assert "come twice" not in first
    assert "come twice" in second
    assert AlertMessage.objects.get().repeats == 2


def test_a_lost_try_is_repeated_once(chat: ChatServer, clock: Clock) -> None:
    """As after a process that was killed while it sent: the row says so, and no ending comes."""
    team = channel(f"json://{chat.host}/")
    told(team, alert(1))
    by = sender(clock)
    by.begin(lambda: True)
    wait_for(lambda: len(chat.arrived) == 1, "it arrives")
    assert states() == ["sending"]
    other = sender(clock)
    send_all(other)
    assert len(chat.arrived) == 1, "the first try may still go on"
    clock.pass_seconds(SENDING_SECONDS)
    send_all(other)
    assert states() == ["sent"]
    assert "come twice" in texts(chat)[1]
    by.record()  # the process was only slow: its ending is too late
    assert AlertMessage.objects.get().tries == 2
    clock.pass_seconds(SENDING_SECONDS)
    send_all(other)
    assert len(chat.arrived) == 2


def test_a_try_that_was_lost_twice_is_given_up(chat: ChatServer, clock: Clock) -> None:
    told(channel(f"json://{chat.host}/"), alert(1))
    for _process in range(3):
        sender(clock).begin(lambda: True)
        clock.pass_seconds(SENDING_SECONDS)
    assert states() == ["given_up"]
    wait_for(lambda: len(chat.arrived) == 2, "both tries arrive")


def test_a_slow_channel_delays_no_other_one(chat: ChatServer, slow_chat: ChatServer, clock: Clock) -> None:
    slow = [channel(f"json://{slow_chat.host}/{number}", f"slow {number}") for number in range(3)]
    quick = channel(f"json://{chat.host}/", "quick")
    by = sender(clock)
    for number, each in enumerate([*slow, quick]):
        told(each, alert(number))
    by.begin(lambda: True)
    wait_for(lambda: by.record() == 1, "the quick one is sent")
    assert sorted(states()) == ["sending", "sending", "sending", "sent"]
    wait_for(lambda: by.record() >= 0 and by.idle, "the others end, too")


def test_a_deleted_channel(clock: Clock) -> None:
    team, by = channel("json://host/"), sender(clock)
    told(team, alert(1))
    by.begin(lambda: False)
    team.delete()
    send_all(by)
    assert states() == ["given_up"]
    assert AlertMessage.objects.get().error == "The channel was deleted."


def test_alerts_that_were_removed(chat: ChatServer, clock: Clock) -> None:
    told(channel(f"json://{chat.host}/"), alert(1))
    by = sender(clock)
    by.begin(lambda: False)
    AlertNotice.objects.all().delete()
    send_all(by)
    assert states() == ["given_up"]
    assert not chat.arrived


def test_a_held_database_tells_of_the_hold_only(chat: ChatServer, clock: Clock) -> None:
    """All other alerts may be those of the deployment whose database was copied."""
    team, by = channel(f"json://{chat.host}/"), sender(clock)
    told(team, alert(1))
    by.begin(lambda: False)
    told(team, alert(2))
    told(team, alert(3, kind=RuleKind.HOLD.value, rule_name="held"))
    send_all(by, only_holds=True)
    (text,) = texts(chat)
    assert "held" in text
    assert "subject 2" not in text
    send_all(by)
    send_all(by)
    assert len(texts(chat)) == 3


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("done", '"anna"'), ("done", "{}"), ("done", "1"), ("done", "null"),
        ("next_try_at", "9999-12-31 00:00:00"), ("next_try_at", None),
        ("created_at", "1000-01-01 00:00:00"), ("tries", 2_147_483_647), ("repeats", 2_147_483_647), ("error", "x"),
        ("channel_name", "\x1b[31m\u202e"), ("delivery_id", ""),
    ],
)  # fmt: skip
def test_a_hostile_message_stops_no_other_one(column: str, value: Any, chat: ChatServer, clock: Clock) -> None:
    bad, good = channel(f"json://{chat.host}/bad", "bad"), channel(f"json://{chat.host}/good", "good")
    told(bad, alert(1))
    sender(clock).begin(lambda: False)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduling_alertmessage SET {column} = %s", [value])
    told(good, alert(2))
    by = sender(clock)
    for _turn in range(2):
        send_all(by)
        clock.pass_seconds(LONGEST_SECONDS)
    assert len(chat.at("/good")) == 1
    assert AlertMessage.objects.get(channel=good).state == "sent"
    state = "given_up" if column in {"tries", "repeats"} else "sent"
    assert AlertMessage.objects.get(channel=bad).state == state


def long(number: int) -> Alert:
    """An alert with texts of the greatest length."""
    return alert(number, subject="\u20ac" * 200, seen="\u20ac" * 1_000, advice="\u20ac" * 500)


@pytest.mark.parametrize(
    ("column", "value"),
    [("severity", "nonsense"), ("rule_name", "\x1b\r\nBcc: x@y.z"), ("subject", "\U0001f600" * 200),
     ("started_at", "9999-12-31 23:59:59"), ("event", "zzz")],
)  # fmt: skip
def test_a_hostile_alert_stops_no_other_one(column: str, value: Any, chat: ChatServer, clock: Clock) -> None:
    told(channel(f"json://{chat.host}/"), *(long(number) for number in range(30)))
    table = "alertnotice" if column == "event" else "alert"
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE scheduling_{table} SET {column} = %s", [value])
    send_all(sender(clock))
    assert states() == ["sent"]
    ((_path, _headers, body),) = chat.arrived
    found = json.loads(body)
    assert "\r" not in found["title"]
    assert len(found["message"]) < TEXT_CHARS + 100


@pytest.mark.parametrize("value", ["not a time", "", "0000-00-00 00:00:00"])
def test_a_time_that_is_none(value: str, chat: ChatServer, clock: Clock) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the server refuses it")
    bad, good = channel(f"json://{chat.host}/bad", "bad"), channel(f"json://{chat.host}/good", "good")
    told(bad, alert(1))
    sender(clock).begin(lambda: False)
    told(good, alert(2))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_alertmessage SET created_at = %s, next_try_at = %s", [value, value])
        cursor.execute("UPDATE scheduling_alert SET started_at = %s WHERE key = 'k1'", [value])
    by = sender(clock)
    for _turn in range(2):
        send_all(by)
        clock.pass_seconds(LONGEST_SECONDS)
    assert len(chat.at("/good")) == 1


def test_without_room_for_a_thread_the_message_waits(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    told(channel("json://host/"), alert(1))
    sent: list[str] = []
    by = sender(clock, send=lambda one: sent.append(one.delivery_id))
    with monkeypatch.context() as patch:
        no_threads(patch)
        send_all(by)
    row = AlertMessage.objects.get()
    assert (row.state, row.tries, row.repeats) == ("waiting", 1, 0)
    assert row.error == "The message could not be sent: can't start new thread"
    assert AlertMessage.objects.filter(next_try_at__gt=clock.now()).exists()
    send_all(by)
    assert states() == ["waiting"], "not before its time"
    clock.pass_seconds(LONGEST_SECONDS)
    send_all(by)
    assert states() == ["sent"]
    assert sent == [row.delivery_id]
