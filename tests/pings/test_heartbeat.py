"""The outbound heartbeat: a monitor hears each minute that alerts are evaluated, and at once that they fail."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.checks import run_checks

from scheduling.conf import ConfError, get_conf
from scheduling.pings import heartbeat as module
from scheduling.pings.heartbeat import AGAIN, EVERY, Heartbeat
from tests.pings.healthchecks_server import Healthchecks
from tests.support import wait_for

CHECK = uuid.UUID(int=7)


@pytest.fixture
def beating(healthchecks: Healthchecks, settings: Any) -> Iterator[Heartbeat]:
    """Start a heartbeat with the URL of the setting."""
    settings.CRON_HEARTBEAT_URL = healthchecks.url(CHECK)
    found = Heartbeat()
    found.start()
    yield found
    found.stop()


def events(healthchecks: Healthchecks) -> list[str]:
    return [event for event, _rid in healthchecks.check(CHECK).log]


def test_one_call_a_minute_however_often_the_evaluator_beats(beating: Heartbeat, healthchecks: Healthchecks) -> None:
    for now in range(0, 61, 10):
        beating.beat(float(now))
        if now in (0, 60):
            wait_for(lambda now=now: beating.delivered == 1 + now // 60, "the heartbeat is delivered")
    assert events(healthchecks) == ["success", "success"]
    assert {call.query.get("rid") for call in healthchecks.calls} == {None}


def test_a_failure_is_told_at_once_and_so_is_its_end(beating: Heartbeat, healthchecks: Healthchecks) -> None:
    beating.beat(0.0)
    wait_for(lambda: beating.delivered == 1, "the first heartbeat")
    beating.beat(10.0, False, "no producer is alive")
    wait_for(lambda: beating.delivered == 2, "the failure")
    beating.beat(20.0, False, "no producer is alive")
    beating.beat(30.0, True)
    wait_for(lambda: beating.delivered == 3, "the recovery")
    found = healthchecks.check(CHECK)
    assert events(healthchecks) == ["success", "fail", "success"]
    assert (found.bodies, found.status) == (["no producer is alive"], "up")


def test_a_monitor_that_hangs_does_not_hold_up_the_caller(
    beating: Heartbeat, healthchecks: Healthchecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.send_all
    monkeypatch.setattr(module, "send_all", lambda requests: real(requests, 0.2))
    healthchecks.hangs.clear()
    beating.beat(0.0)
    wait_for(lambda: beating.problem, "the call is given up")
    assert "did not answer" in beating.problem
    assert str(CHECK) not in beating.problem
    healthchecks.hangs.set()
    beating.beat(AGAIN - 1)
    assert beating.delivered == 0
    beating.beat(AGAIN)  # not after a whole minute
    wait_for(lambda: beating.delivered == 1, "the next heartbeat")
    assert beating.problem == ""


def test_when_the_beats_stop_so_do_the_calls(beating: Heartbeat, healthchecks: Healthchecks) -> None:
    beating.beat(0.0)
    wait_for(lambda: beating.delivered == 1, "the first heartbeat")
    beating.stop()
    beating.beat(EVERY)
    assert beating._thread is not None
    assert not beating._thread.is_alive()
    assert events(healthchecks) == ["success"]


def test_an_internal_address_is_refused(healthchecks: Healthchecks, settings: Any) -> None:
    settings.CRON_INTERNAL_HOSTS = ""
    beating = Heartbeat(healthchecks.url(CHECK))
    beating.start()
    beating.beat(time.monotonic())
    wait_for(lambda: beating.problem, "the call is refused")
    beating.stop()
    assert "CRON_INTERNAL_HOSTS" in beating.problem
    assert healthchecks.calls == []


def test_without_a_url_nothing_is_done() -> None:
    beating = Heartbeat()
    beating.start()
    beating.beat(0.0, False, "x")
    beating.stop()
    assert beating._thread is None
    assert beating.host == ""


def test_the_setting_is_checked_and_its_error_repeats_no_secret(settings: Any) -> None:
    settings.CRON_HEARTBEAT_URL = "ftp://secret-token@hc-ping.com/x"
    with pytest.raises(ConfError, match="CRON_HEARTBEAT_URL must be an address") as caught:
        get_conf()
    assert "secret-token" not in str(caught.value)
    settings.CRON_HEARTBEAT_URL = "http://localhost/secret-token"
    assert "secret-token" not in repr(get_conf())
    (found,) = [found for found in run_checks(tags=["scheduling"]) if found.id == "scheduling.W005"]
    assert found.msg.startswith("CRON_HEARTBEAT_URL: localhost has the internal address")
