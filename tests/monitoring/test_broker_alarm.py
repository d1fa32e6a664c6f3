"""An alarm of the broker is a finding, and an alert of the rule about the broker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.alerts.look import Look
from scheduling.alerts.rules.away import brokers_away
from scheduling.core.broker_alarm import Alarm
from scheduling.core.clock_skew import Skew
from scheduling.models import Process
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.processes import alarms
from scheduling.processes import heartbeat
from scheduling.processes.identity import container_id
from scheduling.processes.loaded_code import LoadedCode
from tests.factories import ProcessFactory

pytestmark = pytest.mark.django_db

WHY = "RabbitMQ takes no messages: low on disk (an alarm of its memory or disk)."


def found() -> list[str]:
    return [finding.in_full for finding in alarms(Present(clock.now()).alive)]


def alerts(seconds: float) -> list[str]:
    rule: Any = type("Rule", (), {"span": timedelta(seconds=seconds)})()
    return [situation.seen for _rule, situation in brokers_away([rule], Look(clock.now()))]


def test_a_heartbeat_tells_of_the_alarm_and_of_its_end() -> None:
    ProcessFactory(kind="producer", container_id=container_id())
    heartbeat.beat(clock.now(), Skew(), LoadedCode(), alarm=Alarm(WHY, 75.4))
    assert Process.objects.get().alarm == (WHY, 75.0)
    assert found() == [
        "The broker takes no messages of processes: 1. What is due waits, and nothing is lost. "
        f"producer {container_id()} (for 1 min 15 s: {WHY[:-1]})."
    ]
    assert alerts(30) == [f"The broker takes no messages: {WHY}"]
    assert alerts(90) == []
    heartbeat.beat(clock.now(), Skew(), LoadedCode())
    assert (found(), alerts(30)) == ([], [])


@pytest.mark.parametrize("alarm", [None, "x", [], ["", 3], ["x", -1], ["x", 1e300], [1, 2], {"why": "x"}])
def test_nonsense_is_no_alarm(alarm: Any) -> None:
    assert Process(info={"alarm": alarm}).alarm == ("", 0.0)
    assert Process(info=[alarm]).alarm == ("", 0.0)
