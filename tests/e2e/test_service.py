"""A service is killed, drained, deployed and paused. It never runs twice at the same time, and it always comes back.

`TEST_SERVICE_ROUNDS=100` does it a hundred times for each transport. It then also checks that the service comes back
within its lease, its delay and five seconds.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.run_now import run_now
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from tests.factories import SchedulerFactory, due
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

ROUNDS = int(os.environ.get("TEST_SERVICE_ROUNDS", "5"))
SEED = int(os.environ.get("TEST_SEED", "20261123"))
LEASE, DELAY = 3, 1
BACK_WITHIN = LEASE + DELAY + 5.0 if ROUNDS >= 100 else 90.0


class Site:
    """One producer, one or two standalone consumers, and a service."""

    def __init__(self, commands: Commands, directory: Path, broker_url: str) -> None:
        self.commands, self.file = commands, directory / "service.txt"
        self.environment = {"BROKER_URL": broker_url, "CRON_LEASE_SECONDS": str(LEASE), "CRON_GRACE_SECONDS": "600"}
        params = {"directory": str(directory)}
        own = {"schedule": "* * * * *", "stay_alive": True, "retry_delay_ms": DELAY * 1000, "retry_multiplier": 1.0}
        self.row = SchedulerFactory(handler="tests.serve", params=params, **own)
        producer = commands.start("run_scheduler", **self.environment)
        self.consumer = self.start()
        commands.ready(producer, self.consumer)

    def start(self) -> object:
        return self.commands.start("run_worker", "--standalone", **self.environment)

    def starts(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    def comes_back(self, before: int, what: str) -> None:
        wait_for(lambda: len(self.starts()) > before, f"the service is back after: {what}", BACK_WITHIN)

    def fall_due(self) -> None:
        """Let an occurrence fall due now. Otherwise the test would wait for the next minute."""
        due(self.row, clock.now().replace(microsecond=0))

    def pause(self, paused: bool) -> None:
        row = Scheduler.objects.get(pk=self.row.pk)
        row.status, row.paused_by = not paused, "ann"
        row.save()


def runs_nowhere(site: Site) -> bool:
    pid = int(site.starts()[-1].split()[3])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def kill_consumer(site: Site, before: int) -> None:
    site.commands.stop(site.consumer, signal.SIGKILL)
    site.consumer = site.start()
    site.comes_back(before, "the consumer was killed")


def kill_child(site: Site, before: int) -> None:
    os.kill(int(site.starts()[-1].split()[3]), signal.SIGKILL)
    site.comes_back(before, "its process was killed")


def drain(site: Site, before: int) -> None:
    assert site.commands.stop(site.consumer) == 0
    site.consumer = site.start()
    site.comes_back(before, "the consumer was drained")


def deploy(site: Site, before: int) -> None:
    new = site.start()
    site.commands.ready(new)
    assert site.commands.stop(site.consumer) == 0
    site.consumer = new
    site.comes_back(before, "a new consumer has replaced the old one")


def pause(site: Site, before: int) -> None:
    site.pause(True)
    wait_for(lambda: runs_nowhere(site), "the paused service ends", BACK_WITHIN)
    wait_for(lambda: not unfinished(), "its run is over")
    assert len(site.starts()) == before
    site.pause(False)
    site.fall_due()
    site.comes_back(before, "it was paused and resumed")


def unfinished() -> list[SchedulerExecution]:
    return list(SchedulerExecution.objects.in_state(*OPEN_STATES))


def test_a_service_is_there_once_whatever_happens(commands: Commands, tmp_path: Path, broker_url: str) -> None:
    print(f"seed {SEED}, {ROUNDS} rounds")  # noqa: T201 - shown if the test fails
    pick, site = random.Random(SEED), Site(commands, tmp_path, broker_url)
    site.fall_due()
    site.comes_back(0, "its first occurrence")
    deeds = [kill_consumer, kill_child, drain, deploy, pause]
    for number in range(ROUNDS):
        deed = deeds[number] if number < len(deeds) else pick.choice(deeds)
        if pick.random() < 0.5:
            site.fall_due()  # an occurrence while it runs is left out
        before = len(site.starts())
        deed(site, before)
        (run,) = unfinished()
        assert int(site.starts()[-1].split()[1]) == run.pk
    assert [line for line in site.starts() if line.startswith("TWICE")] == []
    run.refresh_from_db()
    assert not SchedulerExecution.objects.filter(state="failed").exists()
    assert Attempt.objects.filter(execution=run).count() <= 100
    for skip in SchedulerExecution.objects.filter(state="skipped"):
        known = (
            "Left out, because the service was running already",
            "Paused",
            "The schedule was paused",
            "Missed 1 occurrence",  # a deed made an occurrence due just before a full minute
        )
        assert skip.reason.startswith(known), skip.reason


def test_a_service_that_does_not_end_when_asked_is_killed_and_given_back(commands: Commands, tmp_path: Path) -> None:
    row = SchedulerFactory(handler="tests.serve_deaf", stay_alive=True, params={"directory": str(tmp_path)}, rare=True)
    environment = {"CRON_GRACE_SECONDS": "1"}
    consumer = commands.start("run_worker", "--standalone", **environment)
    run = run_now(row, DatabaseBroker())
    file = tmp_path / "service.txt"
    wait_for(lambda: file.exists() and file.read_text(), "it runs")
    assert commands.stop(consumer) == 0
    run.refresh_from_db()
    attempt = Attempt.objects.get(execution=run)
    assert (run.state, attempt.outcome, attempt.signal) == ("queued", "interrupted", signal.SIGKILL)
    commands.start("run_worker", "--standalone", **environment)
    wait_for(lambda: len(file.read_text().splitlines()) == 2, "another consumer has started it")
    assert "TWICE" not in file.read_text()
