"""Rolling deploys under load: each brings a handler, changes the params of one and removes one. No run is lost.

`TEST_ROLLING_ROUNDS=20` makes twenty deploys for each transport. It then also checks that no second passes in which
nothing starts. `TEST_ROLLING_RATE` is the number of runs a second.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from django.db import connections

from scheduling.broker import Broker, get_broker
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.run_now import run_now
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from tests.e2e.parcels import VERSIONS, Project
from tests.e2e.pulse import Pulse
from tests.factories import SchedulerFactory, WorkerFactory
from tests.support import ROOT, Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

ROUNDS = int(os.environ.get("TEST_ROLLING_ROUNDS", "2"))
RATE = float(os.environ.get("TEST_ROLLING_RATE", "20"))
LONGEST_GAP = 1.0 if ROUNDS >= 20 else 60.0
CONSUMERS = 2


class Caller:
    """The web process: asks for `RATE` runs a second, always with the handlers and params of its own version."""

    def __init__(self, project: Project, broker_url: str) -> None:
        self.project, self.version = project, VERSIONS[0]
        self.asked: dict[int, tuple[str, str]] = {}
        """Maps each execution to its handler and to the version of its params."""
        self.failed: list[str] = []
        names = ["parcels.same", "parcels.changed", *(f"parcels.{version}" for version in VERSIONS)]
        for name in names:
            WorkerFactory(name=name)
        self.rows: dict[str, Scheduler] = {name: SchedulerFactory(rare=True, handler=name) for name in names}
        self._broker_url, self._stop, self._asking = broker_url, threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def switch(self, version: str) -> None:
        """Ask with this version from now on. No run of the former one is on its way into the database."""
        with self._asking:
            self.version = version

    def _work(self) -> None:
        broker = get_broker(self._broker_url)
        try:
            due = time.monotonic()
            for number in itertools.count():
                if self._stop.wait(max(0.0, due - time.monotonic())):
                    return
                due += 1 / RATE
                with self._asking:
                    self._ask(number, broker)
        finally:
            broker.close()
            connections.close_all()

    def _ask(self, number: int, broker: Broker) -> None:
        version = self.version
        name = ("parcels.same", "parcels.changed", f"parcels.{version}")[number % 3]
        try:
            run = run_now(self.rows[name], broker, params=self.project.params(version, name))
        except Exception as error:  # the caller is told, so nothing is lost
            self.failed.append(repr(error))
            return
        self.asked[run.pk] = name, version


class Site:
    """A producer and some consumers. A deploy replaces them one by one, under load."""

    def __init__(self, commands: Commands, directory: Path, broker_url: str) -> None:
        self.commands, self.project = commands, Project(directory)
        self.caller = Caller(self.project, broker_url)
        self.environment = {"BROKER_URL": broker_url, "CRON_MAX_RETRIES": "0"}
        self.producer = self.start(VERSIONS[0], "run_scheduler")
        self.consumers = [self.worker(VERSIONS[0]) for _ in range(CONSUMERS)]
        commands.ready(self.producer, *self.consumers)

    def start(self, version: str, *command: str) -> subprocess.Popen[bytes]:
        return self.commands.start(*command, **self.environment, **self.project.environment(version, ROOT))

    def worker(self, version: str) -> subprocess.Popen[bytes]:
        return self.start(version, "run_worker", "--concurrency", "2")

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        assert self.commands.stop(process) == 0, self.commands.log(process)

    def replace_producer(self, version: str) -> None:
        new = self.start(version, "run_scheduler")
        self.commands.ready(new)
        self.stop(self.producer)
        self.producer = new

    def consumers_first(self, version: str) -> None:
        """New consumers, then the web process, then the producer. The last old consumer ends when it is not needed."""
        old = self.caller.version
        for number in range(CONSUMERS):
            new = self.worker(version)
            self.commands.ready(new)
            self.goes_on()
            if number == CONSUMERS - 1:
                self.caller.switch(version)
                self.done(old)
            self.stop(self.consumers[number])
            self.consumers[number] = new
        self.replace_producer(version)

    def producer_first(self, version: str) -> None:
        """Producer and web process are new while all consumers are old. A consumer ends before the next one starts."""
        old = self.caller.version
        self.replace_producer(version)
        self.caller.switch(version)
        self.goes_on()
        for number in range(CONSUMERS):
            if number == CONSUMERS - 1:
                self.done(old)
            self.stop(self.consumers[number])
            self.consumers[number] = self.worker(version)
            self.commands.ready(self.consumers[number])

    def goes_on(self) -> None:
        """Wait until a second of load has met this mixture of versions."""
        before = len(self.caller.asked)
        wait_for(lambda: len(self.caller.asked) > before + RATE, "more runs are asked for")

    def done(self, version: str) -> None:
        """Wait until no run of this version is open. One that runs may be put off in a moment, and wait again."""
        own = {pk for pk, (name, of) in list(self.caller.asked.items()) if of == version and name != "parcels.same"}
        wait_for(lambda: not own & set(still_open()), f"the runs of {version} are done", 180)

    def gap(self, since: float = 0.0) -> tuple[float, float]:
        """The longest time in which nothing started, in seconds, and when it began (epoch seconds)."""
        times = sorted(mark.at for mark in self.project.marks() if mark.at >= since)
        return max(((later - earlier, earlier) for earlier, later in itertools.pairwise(times)), default=(0.0, 0.0))


def still_open() -> list[int]:
    return list(SchedulerExecution.objects.in_state(*OPEN_STATES).values_list("pk", flat=True))


def check(site: Site, rounds: int) -> None:
    """Each run that was asked for has started once, in a version that knows it, and succeeded."""
    asked, marks = site.caller.asked, site.project.marks()
    assert site.caller.failed == []
    states = dict(SchedulerExecution.objects.values_list("pk", "state"))
    failures = SchedulerExecution.objects.exclude(state="succeeded").values("state", "error_class", "error_message")
    assert Counter(states[pk] for pk in asked) == {"succeeded": len(asked)}, list(failures[:5])
    starts = Counter(mark.execution for mark in marks)
    lost, twice = asked.keys() - starts.keys(), [pk for pk, count in starts.items() if count > 1]
    assert (lost, twice) == (set(), [])
    wrong = [
        mark
        for mark in marks
        if asked[mark.execution][0] != "parcels.same" and asked[mark.execution][1] != mark.version
    ]
    assert wrong == []
    outcomes = Counter(Attempt.objects.values_list("outcome", flat=True))
    assert set(outcomes) <= {"succeeded", "interrupted"}, outcomes
    put_off = Attempt.objects.filter(error_class="Deferred").count()
    print(  # noqa: T201 - the figures of the acceptance test
        f"\n{rounds} deploys, {len(asked)} runs: 0 lost, 0 twice, 0 failed, {put_off} attempts put off, "
        f"longest gap {site.gap()[0]:.2f} s"
    )


def test_a_deploy_loses_no_run_and_fails_none(commands: Commands, tmp_path: Path, broker_url: str) -> None:
    site, pulse = Site(commands, tmp_path, broker_url), Pulse(tmp_path)
    pulse.start()
    site.caller.start()
    try:
        site.goes_on()
        for number in range(ROUNDS):
            new = VERSIONS[(number + 1) % 2]
            deploy = site.consumers_first if number % 2 == 0 else site.producer_first
            begun = time.time()
            deploy(new)
            site.goes_on()
            gap, at = site.gap(begun)
            pause = pulse.longest_pause(at, at + gap)
            print(  # noqa: T201
                f"deploy {number + 1}: {new}, {deploy.__name__}, longest gap {gap:.2f} s, "
                f"in which the machine itself stood still for {pause:.2f} s"
            )
    finally:
        site.caller.stop()
        pulse.stop()
    wait_for(lambda: not still_open(), "everything has ended", 180)
    check(site, ROUNDS)
    assert site.gap()[0] < LONGEST_GAP
