"""Consumers are killed between the start and the end of a run. Its monitors end in the right state."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone as clock

from scheduling.models import Ping, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.pings.healthchecks_server import Healthchecks
from tests.pings.monitor import running
from tests.pings.sentry_server import Sentry
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def claims_end() -> None:
    """Let the time pass for which a killed process owns the pings that it was sending."""
    Ping.objects.filter(sending=True).update(at=clock.now() - timedelta(seconds=1))


def test_each_kill_repeats_one_ping_at_most(commands: Commands, broker_url: str, tmp_path: Path) -> None:
    healthchecks, sentry, check = Healthchecks(), Sentry(), uuid.uuid4()
    with running(healthchecks), running(sentry):
        environment = {
            "BROKER_URL": broker_url, "CRON_LEASE_SECONDS": "3", "CRON_SENTRY_MONITORS": "true",
            "CRON_INTERNAL_HOSTS": f"{healthchecks.host},{sentry.host}", "SENTRY_DSN": sentry.dsn,
            "CRON_RELEASE": "r42", "CRON_PING_CHECK": healthchecks.url(check),
        }  # fmt: skip
        row = SchedulerFactory(
            rare=True, handler="tests.mark", params={"directory": str(tmp_path), "seconds": 2}, name="marks",
            ping_url="${CRON_PING_CHECK}",
        )  # fmt: skip
        producer = commands.start("run_scheduler", **environment)
        first = commands.start("run_worker", **environment)
        commands.ready(producer, first)
        healthchecks.hangs.clear()
        execution = ManualExecutionFactory(scheduler=row, claimed=True).pk  # the producer's sweep publishes it
        wait_for(lambda: Ping.objects.filter(sending=True, kind="healthchecks").exists(), "the start is being sent")
        wait_for(lambda: (tmp_path / f"{execution}.txt").exists(), "the handler runs")
        first.kill()
        first.wait()
        healthchecks.hangs.set()
        claims_end()
        second = commands.start("run_worker", **environment)
        wait_for(lambda: len((tmp_path / f"{execution}.txt").read_text().splitlines()) == 2, "the second attempt runs")
        healthchecks.hangs.clear()
        wait_for(lambda: state(execution) == "succeeded", "the run succeeds")
        second.kill()
        second.wait()
        healthchecks.hangs.set()
        claims_end()
        third = commands.start("run_worker", **environment)
        commands.ready(third)
        wait_for(lambda: claims_end() or not Ping.objects.waiting().exists(), "all is told")
        for process in (third, producer):
            commands.stop(process)
    found = healthchecks.check(check)
    told = Counter(event for event, _rid in found.log)
    assert set(told) == {"start", "success"}
    assert told["start"] <= 2
    assert told["success"] <= 2
    assert found.log[-1][0] == "success"
    assert (found.status, found.started, len(set(found.finished))) == ("up", {}, 1)
    received = sentry.received
    assert [*received.check_ins.values()] == ["ok"]
    assert Counter(one["status"] for one in received.payloads).keys() == {"in_progress", "ok"}
    assert len(received.payloads) <= 4
    assert {one["release"] for one in received.payloads} == {"r42"}
    assert set(received.monitors) == {"marks"}
    assert not Ping.objects.filter(open_execution__isnull=False).exists()


def state(execution: int) -> str:
    return str(SchedulerExecution.objects.get(pk=execution).state)
