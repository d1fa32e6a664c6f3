"""Plain SQL writes hostile values into every column of every table. A healthy rule beside them still tells."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.alerts.evaluation import evaluate
from scheduling.alerts.look import Look
from scheduling.alerts.memory import Memory
from scheduling.core.alert_rules import RuleKind
from scheduling.handlers.targets import sync_targets
from scheduling.models import Alert, AlertNotice, AlertRule
from tests.factories import AlertRuleFactory, ChannelFactory, SchedulerExecutionFactory, SchedulerFactory
from tests.hostile import fuzz
from tests.hostile.standing_rows import BATCH, all_columns, spoil, stand
from tests.hostile.values import empty

pytestmark = pytest.mark.django_db(transaction=True)


def test_hostile_values_stop_no_other_rule() -> None:
    pick, amount = fuzz.generator("alerts"), fuzz.amount(fuzz.ALERTS, 60)
    source, stored, tried = all_columns(pick), 0, 0
    while stored < amount:
        empty()
        sync_targets()
        now = clock.now()
        rows = stand(now)
        spoiled = spoil(pick, source, rows)
        schedule = SchedulerFactory(handler="tests.mark", rare=True)
        SchedulerExecutionFactory(scheduler=schedule, scheduled_at=now - timedelta(hours=1))
        rule = AlertRuleFactory(kind=RuleKind.NOT_STARTED.value, schedule=schedule)
        channel = ChannelFactory()
        rule.channels.add(channel)
        memory = Memory()
        said = f"seed {fuzz.choose_seed()}: " + "; ".join(map(str, spoiled))
        try:
            for second in range(0, 100, 50):
                evaluate(Look(now + timedelta(seconds=second), memory=memory))
            alert = Alert.objects.only("pk").get(rule=rule.pk, ended_at=None)
            notices = AlertNotice.objects.filter(alert=alert.pk, channel=channel.pk)
            assert list(notices.values_list("event", flat=True)) == ["start"]
            assert AlertRule.objects.filter(pk=rule.pk, error="").exists()
        except Exception as error:
            raise AssertionError(said) from error
        stored, tried = stored + len(spoiled), tried + BATCH
    empty()
    sync_targets()
    fuzz.report("alerts", stored=stored, refused=tried - stored)
