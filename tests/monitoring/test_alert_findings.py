"""The findings about alerts: new ones, messages that cannot be delivered, and rules that no process evaluates."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone as clock

from scheduling.models import AlertMessage, AlertRule, AlertWatch, Channel
from scheduling.models.process import AHEAD
from scheduling.models.visibility import Visibility
from scheduling.monitoring.findings import alerts
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.monitoring.findings.present import Present
from tests.factories import AlertFactory, AlertMessageFactory, AlertRuleFactory, AlertWatchFactory, ChannelFactory

pytestmark = pytest.mark.django_db


def found(visible: Visibility | None = None) -> dict[str, Finding]:
    present = Present(clock.now()) if visible is None else Present(clock.now(), visible)
    return {finding.check: finding for finding in alerts.examine(present)}


def test_open_alerts_that_are_new_are_found_and_the_most_urgent_named_first() -> None:
    assert found() == {}
    AlertFactory(acknowledged=True)
    AlertFactory(muted=True)
    AlertFactory(over=True)
    assert found() == {}
    AlertFactory(severity="info", rule_name="Slow")
    assert found()["alerts"].seen == "Open alerts that are not acknowledged: 1."
    assert [row.name for row in found()["alerts"].rows] == ["Slow: failed inbox"]
    AlertFactory(severity="critical", rule_name="No producer")
    finding = found()["alerts"]
    assert (finding.level, finding.seen) == (Level.WARN, "Open alerts that are not acknowledged: 2, critical: 1.")
    assert [row.name for row in finding.rows] == ["No producer: failed inbox", "Slow: failed inbox"]


def test_messages_that_cannot_be_delivered_are_found() -> None:
    AlertMessageFactory()
    AlertMessageFactory(waiting=True, error="")
    AlertMessageFactory(waiting=True, created_at=clock.now() - timedelta(minutes=4))
    AlertMessageFactory(given_up=True, ended_at=clock.now() - timedelta(hours=25))
    assert found() == {}
    AlertMessageFactory(waiting=True)
    AlertMessageFactory(given_up=True)
    finding = found()["alert messages"]
    assert finding.seen == "Messages of alerts that cannot be delivered: 2."
    assert finding.rows[0].about == "given up after 99 tries: The webhook answered 500: no text"


def test_rules_that_no_process_evaluates_are_found() -> None:
    AlertRuleFactory()
    ChannelFactory()
    assert found() == {}, "no rule tells a channel"
    Channel.objects.update(tells_by_default=True)
    assert "yet" in found()["alert watch"].seen
    AlertWatchFactory()
    assert found() == {}
    AlertWatch.objects.update(evaluated_at=int((clock.now() - timedelta(minutes=10)).timestamp()))
    assert found()["alert watch"].seen.startswith("No process has evaluated the alert rules for 10 min")
    AlertWatch.objects.update(evaluated_at=2**62)  # plain SQL can write it
    assert "?" in found()["alert watch"].seen
    AlertRule.objects.update(enabled=False)
    assert found() == {}


@pytest.mark.parametrize(("ahead", "is_found"), [(AHEAD / 2, False), (2 * AHEAD, True), (timedelta(days=30), True)])
def test_an_evaluation_that_lies_ahead_counts_for_none(ahead: timedelta, is_found: bool) -> None:
    AlertRuleFactory()
    ChannelFactory(tells_by_default=True)
    AlertWatchFactory(evaluated_at=int((clock.now() + ahead).timestamp()))
    assert ("alert watch" in found()) is is_found
    assert not is_found or "for ?" in found()["alert watch"].seen


def test_findings_count_only_what_is_seen() -> None:
    group = Group.objects.create(name="others")
    AlertFactory(group=group)
    AlertMessageFactory(given_up=True, channel=ChannelFactory(group=group))
    assert AlertMessage.objects.count() == 1
    assert {*found()} == {"alerts", "alert messages"}
    assert found(Visibility(frozenset({group.pk + 1}))) == {}
