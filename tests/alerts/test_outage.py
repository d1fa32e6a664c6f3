"""A database that is away is told from memory, once, and is recorded afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from scheduling.alerts.brokers import BrokerWatch
from scheduling.alerts.outage import Outage
from scheduling.alerts.outage_record import record
from scheduling.alerts.sending import Claim
from scheduling.alerts.tries import Tries
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertMessage, AlertNotice, AlertRule, Channel
from tests.alerts.support import Clock, channel, no_threads, send_all, sender, states
from tests.notify.chat_server import ChatServer
from tests.support import wait_for

pytestmark = pytest.mark.django_db

WHY = "connection refused"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def team(chat: ChatServer) -> Channel:
    return channel(f"json://{chat.host}/", tells_by_default=True)


class NoDatabase:
    """Refuses each statement, as a database that is away."""

    def __call__(self, *_arguments: Any) -> Any:
        raise AssertionError("a statement, although the database is away")


class Site:
    """A process that has evaluated until the database went away."""

    def __init__(self, clock: Clock, broker: BrokerWatch | None = None) -> None:
        self.clock, self.broker = clock, broker
        self.outage = Outage(Tries(lambda: None))
        self.by = sender(clock)

    def away(self, seconds: float) -> None:
        """The database is away for so long, with a turn every second."""
        with connection.execute_wrapper(NoDatabase()):
            for _turn in range(int(seconds)):
                self.outage.turn(self.clock.now(), WHY, self.broker)
                wait_for(lambda: self.outage._tries._endings.qsize() == len(self.outage._tries._under_way), "tries end")
                self.clock.pass_seconds(1)

    def back(self) -> None:
        """The database is back: what was told is recorded, and the rest is told."""
        for story in self.outage.end(self.clock.now()):
            record(story, self.clock.now())
            self.outage.recorded(story)
        send_all(self.by)
        send_all(self.by)


def rule(kind: RuleKind, **values: Any) -> AlertRule:
    given = {"name": kind.value, "kind": kind.value, "severity": "critical"}
    row: AlertRule = AlertRule.objects.create(**{**given, **values})
    return row


def titles(chat: ChatServer) -> list[str]:
    return [json.loads(body)["title"] for _path, _headers, body in chat.arrived]


STARTED, OVER = "CRITICAL: database_away", "Over: database_away"


def test_it_is_told_once_and_recorded(team: Channel, chat: ChatServer, clock: Clock) -> None:
    rule(RuleKind.DATABASE_AWAY)
    site, since = Site(clock), clock.now()
    site.outage.remember()
    site.away(29)
    assert not chat.arrived
    site.away(30)
    assert titles(chat) == [STARTED]
    site.back()
    assert titles(chat) == [STARTED, OVER]
    site.back()
    alert = Alert.objects.get()
    assert (alert.started_at, alert.ended_at) == (since, since + timedelta(seconds=59))
    assert WHY in alert.seen
    assert states() == ["sent", "sent"]
    assert list(AlertNotice.objects.order_by("pk").values_list("event", "message__tries")) == [("start", 1), ("end", 1)]
    assert titles(chat) == [STARTED, OVER]
    site.away(5)
    site.back()
    assert titles(chat) == [STARTED, OVER], "a short outage is told by no message"
    assert Alert.objects.count() == 1


def test_a_process_that_did_not_evaluate_says_nothing(team: Channel, chat: ChatServer, clock: Clock) -> None:
    rule(RuleKind.DATABASE_AWAY)
    stood_by, has_lost_it = Site(clock), Site(clock)
    has_lost_it.outage.remember()
    has_lost_it.outage.forget()
    for site in (stood_by, has_lost_it):
        site.away(60)
        site.back()
    assert not chat.arrived
    assert not Alert.objects.exists()


@pytest.mark.parametrize("values", [{"enabled": False}, {"muted": True}, {"seconds": -1.0}, {"seconds": 3_600.0}])
def test_the_rule_is_respected_from_memory(
    values: dict[str, Any], team: Channel, chat: ChatServer, clock: Clock
) -> None:
    if values.pop("muted", False):
        values["muted_until"] = clock.now() + timedelta(hours=1)
    rule(RuleKind.DATABASE_AWAY, **values)
    site = Site(clock)
    site.outage.remember()
    AlertRule.objects.update(enabled=True, muted_until=None, seconds=None)  # it could not see this
    site.away(60)
    site.back()
    assert not chat.arrived
    assert not Alert.objects.exists()


def test_a_mute_that_ends_meanwhile(team: Channel, chat: ChatServer, clock: Clock) -> None:
    rule(RuleKind.DATABASE_AWAY, muted_until=clock.now() + timedelta(seconds=45))
    site = Site(clock)
    site.outage.remember()
    site.away(45)
    assert not chat.arrived
    site.away(2)
    assert titles(chat) == [STARTED]


def test_what_could_not_be_sent_is_told_with_the_end(team: Channel, chat: ChatServer, clock: Clock) -> None:
    """The network of this host was away, for example: with the database went the chat."""
    rule(RuleKind.DATABASE_AWAY)
    site = Site(clock)
    site.outage.remember()
    chat.status = 503
    site.away(100)
    tries = len(chat.arrived)
    assert 2 <= tries <= 4, "with longer and longer waits"
    chat.status = 200
    site.back()
    assert titles(chat)[tries:] == [OVER]
    assert states() == ["sent"]


def test_a_refused_message_is_recorded_as_given_up(team: Channel, chat: ChatServer, clock: Clock) -> None:
    rule(RuleKind.DATABASE_AWAY)
    other = channel(f"json://{chat.host}/gone", "gone", tells_by_default=True)
    chat.answers["/gone"] = 404
    site = Site(clock)
    site.outage.remember()
    site.away(60)
    assert len(chat.arrived) == 2
    site.back()
    assert AlertMessage.objects.filter(channel=other).values_list("state", "tries").first() == ("given_up", 1)
    assert "404" in AlertMessage.objects.filter(channel=other)[0].error
    assert len(chat.at("/")) == 2


def test_a_message_under_way_when_the_database_is_back(
    settings: Any, team: Channel, chat: ChatServer, clock: Clock
) -> None:
    rule(RuleKind.DATABASE_AWAY, seconds=10.0)
    site = Site(clock)
    site.outage.remember()
    chat.silence = 1.0
    with connection.execute_wrapper(NoDatabase()):
        for _turn in range(12):
            site.outage.turn(clock.now(), WHY, None)
            clock.pass_seconds(1)
    wait_for(lambda: len(chat.arrived) == 1, "it is under way")
    site.back()
    assert states() == ["sending"]
    wait_for(lambda: site.outage._tries._endings.qsize(), "it has ended")
    for telling, ending in site.outage.late(clock.now()):
        site.by.adopt(Claim(telling.message or 0, telling.tries, telling.repeats, telling.created_at), ending)
    site.by.record()
    chat.silence = 0.0
    send_all(site.by)
    assert titles(chat) == [STARTED, OVER]
    assert states() == ["sent", "sent"]


def test_a_rule_and_a_channel_that_were_deleted_meanwhile(team: Channel, chat: ChatServer, clock: Clock) -> None:
    rule(RuleKind.DATABASE_AWAY)
    site = Site(clock)
    site.outage.remember()
    site.away(60)
    AlertRule.objects.all().delete()
    team.delete()
    site.back()
    assert Alert.objects.get().rule is None
    assert states() == ["sent"]
    assert len(chat.arrived) == 1


@pytest.fixture
def dead_broker(free_port: int) -> Iterator[BrokerWatch]:
    """The watch of a broker that is not there. A second of its time passes with each look."""
    seconds = iter(range(1_000_000))
    watch = BrokerWatch(f"amqp://guest:guest@127.0.0.1:{free_port}/", elapsed=lambda: float(next(seconds)))
    watch.look()
    yield watch
    watch.close()


def test_both_are_away(team: Channel, chat: ChatServer, clock: Clock, dead_broker: BrokerWatch) -> None:
    """The broker stays away: its alert is open, and the ordinary rule goes on with it."""
    rule(RuleKind.DATABASE_AWAY)
    row = rule(RuleKind.BROKER_AWAY)
    site = Site(clock, dead_broker)
    site.outage.remember()
    site.away(60)
    assert sorted(titles(chat)) == ["CRITICAL: broker_away", STARTED]
    site.back()
    assert sorted(titles(chat)) == ["CRITICAL: broker_away", STARTED, OVER]
    alert = Alert.objects.get(rule=row)
    assert alert.is_open
    assert alert.told_at is not None
    assert alert.open_key


def test_a_broker_alert_that_is_open_is_not_told_again(
    team: Channel, chat: ChatServer, clock: Clock, dead_broker: BrokerWatch
) -> None:
    row = rule(RuleKind.BROKER_AWAY)
    Alert.objects.create(
        rule=row, rule_name=row.name, kind=row.kind, severity="critical", key="broker", open_key="x", subject="broker",
        seen="x", started_at=clock.now(), seen_at=clock.now(), told_at=clock.now(),
    )  # fmt: skip
    site = Site(clock, dead_broker)
    site.outage.remember()
    site.away(60)
    site.back()
    assert not chat.arrived
    assert Alert.objects.get().is_open


def test_without_room_for_a_thread_it_is_told_later_in_the_outage(
    chat: ChatServer, team: Channel, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(RuleKind.DATABASE_AWAY, seconds=10)
    site = Site(clock)
    site.outage.remember()
    with monkeypatch.context() as patch:
        no_threads(patch)
        site.away(15)
    assert titles(chat) == []
    site.away(60)
    assert titles(chat) == [STARTED]
    site.back()
    first = AlertMessage.objects.earliest("pk")
    assert (first.state, first.repeats) == ("sent", 0)
