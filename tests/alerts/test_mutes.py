"""A mute ends. One that would last for longer than any mute counts as none, wherever mutes are read."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduling.admin.alerts.told import is_muted as is_shown_as_muted
from scheduling.alerts.outage import Outage
from scheduling.alerts.sign_of_life import SignOfLife
from scheduling.alerts.tries import Tries, Try
from scheduling.alerts.untold import UntoldAlerts, untold_at
from scheduling.core.alert_mutes import FARTHEST_END, LONGEST_MUTE, is_muted
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertRule
from scheduling.monitoring.findings.watched import new_alerts
from tests.alerts.support import alert, channel, only_rule
from tests.support import NOON, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)

ENDS = [
    (None, False), (NOON - SECOND, False), (NOON, False), (NOON + SECOND, True), (NOON + LONGEST_MUTE, True),
    (NOON + FARTHEST_END, True), (NOON + FARTHEST_END + SECOND, False), (NOON + timedelta(days=3_650), False),
]  # fmt: skip
"""Ends of mutes, and whether such a mute lasts at noon."""

each_end = pytest.mark.parametrize(("until", "muted"), ENDS)


@pytest.fixture
def rule() -> AlertRule:
    """The only rule. It is critical."""
    return only_rule(RuleKind.NO_PRODUCER)


def open_alert(rule: AlertRule, until: datetime | None = None) -> None:
    alert(rule=rule, rule_name=rule.name, kind=rule.kind, severity="critical", muted_until=until).save()


def mute(rule: AlertRule, until: datetime | None) -> None:
    AlertRule.objects.filter(pk=rule.pk).update(muted_until=until)


@each_end
def test_python_and_sql_agree(rule: AlertRule, until: datetime | None, muted: bool) -> None:
    open_alert(rule, until)
    row = Alert.objects.get()
    assert is_muted(until, NOON) is is_shown_as_muted(row, NOON) is muted
    assert new_alerts(NOON).exists() is not muted


@each_end
@pytest.mark.parametrize("whole_rule", [False, True])
def test_an_alert_whose_mute_is_over_or_has_no_end_is_told(
    rule: AlertRule, until: datetime | None, muted: bool, whole_rule: bool
) -> None:
    open_alert(rule, None if whole_rule else until)
    mute(rule, until if whole_rule else None)
    untold = UntoldAlerts(untold_at)
    untold.rows(NOON - timedelta(days=1))  # the statement is built once, for another instant
    assert bool(untold.rows(NOON)) is not muted


@each_end
@pytest.mark.parametrize("whole_rule", [False, True])
def test_the_monitor_outside_is_told(
    rule: AlertRule, until: datetime | None, muted: bool, whole_rule: bool,
    settings: Any, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    settings.CRON_HEARTBEAT_URL = "https://monitor.example/x"
    open_alert(rule, None if whole_rule else until)
    mute(rule, until if whole_rule else None)
    sign, told = SignOfLife(), list[bool]()
    monkeypatch.setattr(sign._heartbeat, "start", lambda: None)
    monkeypatch.setattr(sign._heartbeat, "beat", lambda now, healthy, text: told.append(healthy))
    sign.evaluated(NOON)
    assert told == [muted]


@each_end
def test_a_rule_is_told_from_memory(rule: AlertRule, until: datetime | None, muted: bool) -> None:
    AlertRule.objects.update(kind=RuleKind.DATABASE_AWAY.value, seconds=10)
    mute(rule, until)
    channel("json://host/", tells_by_default=True)
    sent: list[Try] = []
    outage = Outage(Tries(lambda: None, send=sent.append))
    outage.remember()
    for now in (NOON - 10 * SECOND, NOON):
        outage.turn(now, "connection refused", None)
    if muted:
        assert outage._tries.idle
    else:
        wait_for(lambda: bool(sent), "it is told")
