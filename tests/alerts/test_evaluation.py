"""Alerts begin once, go on, and end once; channels are told of both."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.alerts.evaluation import evaluate
from scheduling.alerts.lease import LEASE_SECONDS, give_lease_back, take_lease
from scheduling.alerts.look import Look
from scheduling.core.alert_rules import RuleKind
from scheduling.execution.retention import prune
from scheduling.models import Alert, AlertNotice, AlertRule, Channel, KnownErrorGroup, Process, SchedulerExecution
from tests.alerts.scripted import START, Script, run_of
from tests.factories import (
    AlertFactory,
    AlertNoticeFactory,
    AlertRuleFactory,
    ChannelFactory,
    GroupFactory,
    ManualExecutionFactory,
    ProcessFactory,
    SchedulerFactory,
    due,
)
from tests.hostile.values import empty, lenient, write

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


def producer_at(now: datetime) -> None:
    Process.objects.update_or_create(
        container_id="p-1", defaults={"kind": "producer", "host": "p", "pid": 1, "started_at": now, "heartbeat_at": now}
    )


def test_one_alert_from_beginning_to_end() -> None:
    AlertRuleFactory(kind=RuleKind.NO_PRODUCER.value)
    channel = Channel.objects.create(name="team", address="json://host", tells_by_default=True)
    producer_at(NOON)
    evaluate(Look(NOON))
    assert not Alert.objects.exists()
    late = NOON + timedelta(minutes=10)
    for second in range(3):
        evaluate(Look(late + timedelta(seconds=second)))
    alert = Alert.objects.get()
    assert (alert.started_at, alert.ended_at) == (late, None)
    assert list(AlertNotice.objects.values_list("channel", "event")) == [(channel.pk, "start")]
    back = late + timedelta(minutes=1)
    producer_at(back)
    for second in range(3):
        evaluate(Look(back + timedelta(seconds=second)))
    alert.refresh_from_db()
    assert alert.ended_at == back
    assert sorted(AlertNotice.objects.values_list("event", flat=True)) == ["end", "start"]


def test_one_process_holds_the_lease() -> None:
    assert take_lease("a", NOON)
    assert not take_lease("b", NOON + timedelta(seconds=LEASE_SECONDS))
    assert take_lease("a", NOON + timedelta(seconds=LEASE_SECONDS))
    assert take_lease("b", NOON + timedelta(seconds=2 * LEASE_SECONDS + 1))
    give_lease_back("b")
    assert take_lease("a", NOON + timedelta(seconds=2 * LEASE_SECONDS + 2))


@pytest.fixture
def script() -> Script:
    """Return a script about the inbox, beside which other rules may be stored."""
    return Script(RuleKind.INBOX, number=0)


BAD: list[dict[str, Any]] = [
    {"number": -1.0},
    {"number": 1e300},
    {"kind": "nonsense"},
    {"kind": "not_started", "seconds": 1.0},
    {"kind": "not_finished", "at": "06:30"},
]


@pytest.mark.parametrize("columns", BAD)
def test_a_rule_out_of_bounds_says_why_and_the_others_go_on(script: Script, columns: dict[str, Any]) -> None:
    bad = AlertRuleFactory(**columns)
    run_of(None, "failed", START)
    assert script.begins().rule_id == script.rule.pk
    bad.refresh_from_db()
    assert bad.error
    AlertRule.objects.filter(pk=bad.pk).update(number=None, seconds=None, kind="inbox")
    script.look(1)
    bad.refresh_from_db()
    assert bad.error == ""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("value", ["many", "nan", b"\xff"])
def test_a_threshold_that_plain_sql_has_written_stops_no_other_rule(script: Script, value: object) -> None:
    bad = AlertRuleFactory()
    with lenient():
        write(AlertRule, AlertRule._meta.get_field("number"), bad.pk, value)  # type: ignore[arg-type]
    run_of(None, "failed", START)
    script.look()
    assert Alert.objects.filter(rule=script.rule.pk).count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_rule_whose_schedule_is_gone_says_so(script: Script) -> None:
    bad = AlertRuleFactory(schedule=SchedulerFactory())
    with lenient():
        if write(AlertRule, AlertRule._meta.get_field("schedule"), bad.pk, 10**9) is None:  # type: ignore[arg-type]
            pytest.skip(f"refused by {connection.vendor}")
    script.look(1)
    assert "does not exist" in AlertRule.objects.get(pk=bad.pk).error
    AlertRule.objects.filter(pk=bad.pk)._raw_delete("default")


def test_an_alert_whose_rule_is_turned_off_or_deleted_ends(script: Script) -> None:
    run_of(None, "failed", START)
    other = AlertRuleFactory(number=0)
    script.look(1)
    assert script.told == {"start": 2}
    AlertRule.objects.filter(pk=other.pk).delete()
    AlertRule.objects.filter(pk=script.rule.pk).update(enabled=False)
    script.look(1)
    assert script.told == {"start": 2, "end": 2}


def test_muted_alerts_are_told_when_the_mute_is_over_and_not_at_all_if_they_have_ended() -> None:
    script = Script(RuleKind.INBOX, number=0, muted_until=START + timedelta(seconds=35))
    run = run_of(None, "failed", START)
    script.look(3)
    assert not script.told
    script.look(3)
    assert script.told == {"start": 1}
    script = Script(RuleKind.INBOX, number=0, now=script.now, muted_until=START + timedelta(days=1))
    AlertNotice.objects.all().delete()
    script.look(3)
    type(run).objects.filter(pk=run.pk).update(state="discarded")
    script.look()
    assert not script.told
    assert Alert.objects.latest("pk").ended_at is not None


def test_a_situation_that_comes_and_goes_is_one_alert(script: Script) -> None:
    run = run_of(None, "failed", START)
    for state in ("failed", "queued", "queued", "failed", "queued", "failed"):
        type(run).objects.filter(pk=run.pk).update(state=state)
        script.look(1)
    assert script.told == {"start": 1}


def test_channels_of_another_group_are_told_nothing(script: Script) -> None:
    group, other = GroupFactory(), GroupFactory()
    own, foreign = ChannelFactory(group=group), ChannelFactory(group=other)
    AlertRule.objects.filter(pk=script.rule.pk).update(enabled=False)
    rule = AlertRuleFactory(kind="failed_in_a_row", number=1)
    rule.channels.set([own, foreign])
    AlertRuleFactory(kind="failed_in_a_row", number=1, group=other)  # it looks at schedules of the other group only
    schedule = SchedulerFactory(group=group)
    run_of(schedule, "failed", START, group=group)
    script.look(2)
    assert list(AlertNotice.objects.values_list("channel", flat=True)) == [own.pk]
    assert Alert.objects.get().group_id == group.pk


def test_very_many_situations_are_few_alerts() -> None:
    script = Script(RuleKind.RETRIED, number=1)
    group = GroupFactory()
    schedule = SchedulerFactory(rare=True)
    ManualExecutionFactory.bulk(150, schedule, retrying=True, attempt=9)
    ManualExecutionFactory.bulk(150, schedule, retrying=True, attempt=9, group=group)
    script.look(5)
    assert script.told == {"start": 102}
    further = Alert.objects.filter(key__startswith="further").order_by("pk")
    assert sorted(further.values_list("group", flat=True), key=str) == [group.pk, None]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("column", ["scheduled_at", "attempt", "scheduler", "group"])
def test_a_run_that_cannot_be_read_hides_no_other_one(column: str) -> None:
    script = Script(RuleKind.NOT_STARTED)
    bad, good = (run_of(SchedulerFactory(), "queued", script.ago(hours=1)) for _ in range(2))
    instant = {"sqlite": "2026-13-45 25:61:61", "postgresql": "infinity"}.get(connection.vendor, "0000-00-00 00:00:00")
    with lenient():
        value = instant if column == "scheduled_at" else "many"
        write(SchedulerExecution, SchedulerExecution._meta.get_field(column), bad.pk, value)  # type: ignore[arg-type]
    script.look(2)
    assert Alert.objects.filter(execution=good.pk).count() == 1
    empty()


READS = ("SELECT", "(SELECT", "SAVEPOINT", "RELEASE")
"""So statements begin that change nothing."""


def test_an_evaluation_without_news_writes_nothing(script: Script) -> None:
    ProcessFactory(heartbeat_at=START + timedelta(seconds=55), producer=True)
    for kind in RuleKind:
        if kind is not RuleKind.NOT_FINISHED:
            AlertRuleFactory(kind=kind.value)
    run_of(due(SchedulerFactory(), START + timedelta(days=1)), "failed", START)
    script.look(3)
    with CaptureQueriesContext(connection) as captured:
        script.look(1)
    writes = [query["sql"] for query in captured if not query["sql"].startswith(READS)]
    assert writes == []


def test_rules_of_one_kind_share_their_queries(script: Script) -> None:
    schedules = [SchedulerFactory() for _ in range(40)]
    kinds = [kind.value for kind in RuleKind if kind not in (RuleKind.NO_CONSUMER, RuleKind.NOT_FINISHED)]
    for kind in kinds:
        AlertRuleFactory(kind=kind, schedule=schedules[0])
    script.look(1)
    with CaptureQueriesContext(connection) as few:
        script.look(1)
    for schedule in schedules:
        for kind in kinds[:9]:
            AlertRuleFactory(kind=kind, schedule=schedule)
    script.look(1)
    with CaptureQueriesContext(connection) as many:
        script.look(1)
    assert len(many) <= len(few) + 2


def test_cleanup_removes_alerts_that_ended_long_ago_with_their_messages() -> None:
    old, recent = START - timedelta(days=40), START - timedelta(days=2)
    AlertNoticeFactory(alert__ended_at=old, alert__open_key=None, message__ended_at=old)
    lasting = AlertNoticeFactory(message__ended_at=old)  # an open alert
    ended = AlertNoticeFactory(alert__ended_at=recent, alert__open_key=None, message__ended_at=recent)
    AlertFactory()
    KnownErrorGroup.objects.create(key="1", left_at=old)
    KnownErrorGroup.objects.create(key="2")
    done = prune(START, dry_run=True)
    assert (done.alerts, Alert.objects.count()) == (1, 4)
    done = prune(START)
    assert done.alerts == 1
    assert set(AlertNotice.objects.values_list("pk", "message")) == {
        (lasting.pk, lasting.message_id),
        (ended.pk, ended.message_id),
    }
    assert Alert.objects.count() == 3
    assert type(lasting.message).objects.count() == 2
    assert KnownErrorGroup.objects.get().key == "2"
