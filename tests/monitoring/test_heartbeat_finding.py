"""The doctor and the dashboard say whether the monitor outside gets the heartbeat."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduling.alerts.evaluator import Evaluator
from scheduling.alerts.lease import note_evaluation, note_heartbeat, take_lease
from scheduling.alerts.sign_of_life import NEVER, Delivery, SignOfLife
from scheduling.models import AlertWatch
from scheduling.monitoring.findings import heartbeat
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.monitoring.findings.present import Present
from tests.pings.healthchecks_server import Healthchecks
from tests.support import NOON, wait_for

pytestmark = pytest.mark.django_db

URL = "https://hc-ping.example/secret-token"


@pytest.fixture(autouse=True)
def monitor(settings: Any) -> None:
    settings.CRON_HEARTBEAT_URL = URL
    take_lease("web 1", NOON, 30)


def found(at: datetime = NOON) -> Finding:
    (finding,) = heartbeat.examine(Present(at))
    assert "secret-token" not in finding.seen
    return finding


def test_without_a_monitor_nothing_is_said(settings: Any) -> None:
    settings.CRON_HEARTBEAT_URL = ""
    assert list(heartbeat.examine(Present(NOON))) == []


def test_a_heartbeat_that_is_delivered_is_fine_until_it_stops() -> None:
    assert found().level is Level.WARN
    note_evaluation(NOON, Delivery(NOON - timedelta(seconds=20)))
    assert (found().level, found().seen) == (
        Level.OK, "The last heartbeat to hc-ping.example was delivered 20 s ago."
    )  # fmt: skip
    note_evaluation(NOON, None)  # the next process has not sent one yet
    assert found().level is Level.OK
    later = found(NOON + timedelta(minutes=10))
    assert later.level is Level.WARN
    assert later.seen == "The process that evaluates the alerts sends no heartbeat to hc-ping.example."


def test_the_reason_is_said_as_long_as_none_is_delivered() -> None:
    note_evaluation(NOON, Delivery(NOON))
    note_heartbeat("web 1", Delivery(None, "The monitor answered 404.\x00"))
    assert found().level is Level.WARN
    assert found().seen.startswith("The heartbeat to hc-ping.example is not delivered: The monitor answered 404.")
    note_heartbeat("web 2", Delivery(NOON))  # it does not hold the lease
    assert found().level is Level.WARN
    note_heartbeat("web 1", Delivery(NOON))
    assert found().level is Level.OK


def test_a_process_without_the_setting_that_evaluates_is_found() -> None:
    note_evaluation(NOON, Delivery(NOON))
    note_evaluation(NOON, Delivery(NEVER))
    assert found().level is Level.WARN


@pytest.mark.parametrize("seconds", [2**62, 0, int((NOON + timedelta(days=1)).timestamp())])
def test_an_instant_that_no_clock_shows_is_no_heartbeat(seconds: int) -> None:
    AlertWatch.objects.update(heartbeat_at=seconds)
    assert found().level is Level.WARN


def test_the_process_that_evaluates_knows_when_a_heartbeat_was_delivered(
    settings: Any, healthchecks: Healthchecks
) -> None:
    settings.CRON_HEARTBEAT_URL = ""
    assert SignOfLife().delivery(NOON) == Delivery(NEVER)
    settings.CRON_HEARTBEAT_URL = healthchecks.url(uuid.UUID(int=7))
    sign = SignOfLife()
    assert sign.delivery(NOON) is None
    sign.evaluated(NOON)
    wait_for(lambda: sign.delivery(NOON), "the heartbeat is delivered")
    delivery = sign.delivery(NOON)
    sign.close()
    assert delivery is not None
    assert delivery.at is not None
    assert NOON - timedelta(minutes=1) < delivery.at <= NOON


@pytest.mark.django_db(transaction=True)  # an evaluator closes its connections
def test_a_process_that_evaluates_once_records_its_heartbeat(settings: Any, healthchecks: Healthchecks) -> None:
    settings.CRON_HEARTBEAT_URL = healthchecks.url(uuid.UUID(int=7))
    one = Evaluator(name="crontab")
    assert one.turn()
    wait_for(lambda: one.idle, "the monitor was told")
    one.close()
    assert AlertWatch.objects.get().heartbeat_at > 0
