"""A broker that is away together with the database is told from memory once, whatever else is told about the broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduling.alerts import evaluator as module
from scheduling.alerts.brokers import AWAY_KEY, BrokerWatch
from scheduling.alerts.evaluator import Evaluator
from scheduling.alerts.look import Look
from scheduling.alerts.outage import Outage
from scheduling.alerts.outage_record import record
from scheduling.alerts.rules.away import broker_away
from scheduling.alerts.tries import Tries, Try
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertRule
from tests.alerts.support import Clock, alert, channel, only_rule
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

TOLD = "CRITICAL: broker_away"


def away_for_an_hour() -> BrokerWatch:
    watch = BrokerWatch("amqp://broker", elapsed=lambda: 100.0)
    watch.assume_away(3_600)
    return watch


@pytest.fixture
def rule() -> AlertRule:
    """The only rule: it tells of the broker."""
    return only_rule(RuleKind.BROKER_AWAY)


def open_alert(rule: AlertRule, key: str) -> None:
    alert(rule=rule, rule_name=rule.name, kind=rule.kind, key=key, open_key=key, subject="broker").save()


class Site:
    """A process that has evaluated until the database went away, and the broker with it."""

    def __init__(self) -> None:
        channel("json://host/", tells_by_default=True)
        self.clock, self.broker = Clock(), away_for_an_hour()
        self.sent: list[str] = []
        self.outage = Outage(Tries(lambda: None, send=self._send))
        self.outage.remember()

    def _send(self, given: Try) -> None:
        self.sent.append(given.letter.subject)

    def away(self) -> None:
        """The database is away for two turns."""
        for _turn in range(2):
            self.outage.turn(self.clock.now(), "connection refused", self.broker)
            wait_for(lambda: self.outage._tries._endings.qsize() == len(self.outage._tries._under_way), "tries end")
            self.clock.pass_seconds(5)

    def back(self) -> None:
        """The database answers, and has the record. The process has not read the rules again."""
        for story in self.outage.end(self.clock.now()):
            record(story, self.clock.now())
            self.outage.recorded(story)


@pytest.mark.parametrize(("key", "sent"), [("alarm", [TOLD]), (AWAY_KEY, [])])
def test_only_an_open_alert_about_the_same_hides_a_broker_that_is_away(
    rule: AlertRule, key: str, sent: list[str]
) -> None:
    open_alert(rule, key)
    site = Site()
    site.away()
    assert site.sent == sent


def test_a_broker_that_stays_away_is_told_once_while_the_database_comes_and_goes(rule: AlertRule) -> None:
    site = Site()
    for _time in range(3):
        site.away()
        site.back()
    assert site.sent == [TOLD]
    assert Alert.objects.get().is_open


def test_a_broker_that_was_back_meanwhile_is_told_again(rule: AlertRule) -> None:
    site = Site()
    site.away()
    site.broker = BrokerWatch("amqp://broker")
    site.away()
    site.back()
    site.broker = away_for_an_hour()
    site.away()
    assert site.sent == [TOLD, TOLD]


def test_the_rule_finds_a_broker_that_is_away_by_this_key(rule: AlertRule) -> None:
    look = Look(Clock().now(), away_for_an_hour())
    assert [situation.key for situation in broker_away(rule, look)] == [AWAY_KEY]


@pytest.fixture
def quiet_broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerWatch]:
    """A broker of which nothing is known yet. A look at it takes longer than a turn waits."""
    watch = BrokerWatch("amqp://broker")
    monkeypatch.setattr(watch, "look", lambda: None)
    monkeypatch.setattr(module, "watch_of", lambda _url: watch)
    yield watch
    watch.close()


@pytest.mark.parametrize(("key", "is_away"), [("alarm", False), (AWAY_KEY, True)])
def test_a_process_that_takes_over_goes_on_with_a_broker_that_was_told_to_be_away(
    rule: AlertRule, quiet_broker: BrokerWatch, key: str, is_away: bool
) -> None:
    open_alert(rule, key)
    one = Evaluator(name="one", send=lambda given: None)
    assert one.turn()
    assert (quiet_broker.away_seconds > 0) is is_away
    one.close()
