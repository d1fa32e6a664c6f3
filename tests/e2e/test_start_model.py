"""Processes keep to what the start model says: random runs, pauses, freezes, limits, faults and kills.

The full volume, for each transport: `TEST_MODEL_SECONDS=1200`. TEST_SEED chooses the events.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.api import Asked as Wanted
from scheduling.api import run_many
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.own_broker import close_own_broker
from scheduling.handlers.targets import handler_named
from scheduling.models import Attempt, Breaker, LimitPlace, Pause, SchedulerExecution
from tests.apps.sample.modelled import BREAKER, DOWN, NAMES
from tests.e2e.start_marks import (
    Asked,
    Paused,
    close_probes,
    exceeded_spans,
    longest_waits,
    most_at_once,
    pause_of_scope,
    paused_starts,
    spans,
)
from tests.factories import PauseFactory, WorkerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SECONDS = float(os.environ.get("TEST_MODEL_SECONDS", "8"))
SEED = int(os.environ.get("TEST_SEED", "20261125"))
RATE = 5.0
"""Runs a second."""
MOST_OPEN = 60
KEYS = ("a", "b", "c")
QUEUES = ("main", "mail")
LATENCY = 3.0
"""Consumers know a pause within a second. A loaded machine may need two more for a start that was on its way."""
LEASE = 5
BROKEN = [name for name in NAMES if name in ("tests.model_broken", "tests.model_both")]


@pytest.fixture
def transport(broker_url: str, settings: Any) -> Iterator[str]:
    """Provide the URL of the transport. This process uses it, too."""
    settings.BROKER_URL = broker_url
    for name in NAMES:
        WorkerFactory(name=name)
    yield broker_url
    close_own_broker()


class Site:
    """A producer, two consumers, and random events. It records what it has done, and when."""

    def __init__(self, commands: Commands, directory: Path, broker_url: str) -> None:
        self.commands, self.directory, self.pick = commands, directory, random.Random(SEED)
        self.environment = {"BROKER_URL": broker_url, "CRON_LEASE_SECONDS": str(LEASE)}
        self.asked: dict[int, Asked] = {}
        self.kills: list[float] = []
        self.pauses: list[Paused] = []
        self.circuits: dict[str, dict[float, str]] = defaultdict(dict)
        """For each handler, in which state its breaker was since when."""
        self._paused: list[tuple[Pause, float, float]] = []
        self._up_at = self._kill_at = 0.0
        self.consumers = [self.consumer(), self.consumer()]
        commands.ready(commands.start("run_scheduler", **self.environment), *self.consumers)
        self._kill_at = time.time() + min(5.0, SECONDS / 3)

    def consumer(self) -> Any:
        return self.commands.start("run_worker", "--queue", ",".join(QUEUES), "--concurrency", "3", **self.environment)

    def work(self, until: float) -> None:
        """Let random things happen."""
        while (now := time.time()) < until:
            for _ in range(self.pick.choice([1, 1, 3])):
                self.ask()
            if not self._paused and self.pick.random() < 0.06:
                self.pause(now)
            self.resume(now)
            self.fault(now)
            if now >= self._kill_at:
                self.kill(now)
            self.look()
            time.sleep(1 / RATE)

    def ask(self) -> None:
        if SchedulerExecution.objects.in_state(*OPEN_STATES).count() > MOST_OPEN:
            return
        handler, key, queue = (self.pick.choice(names) for names in (NAMES, KEYS, QUEUES))
        params = {"directory": str(self.directory), "region": key, "seconds": self.pick.choice([0, 0.05, 0.2])}
        priority = self.pick.choice(["high", "normal", "low"])
        at = time.time()
        (submitted,) = run_many([Wanted(handler, params, queue=queue, priority=priority)])
        limit = handler_named("worker", handler).limit  # type: ignore[union-attr]
        self.asked[submitted.id] = Asked(handler, key if limit and limit.key else "", queue, at)

    def pause(self, now: float) -> None:
        scope = self.pick.choice(["site", "queue", "handler"])
        name = {"site": "", "queue": self.pick.choice(QUEUES), "handler": self.pick.choice(NAMES)}[scope]
        Pause.objects.filter(scope=scope, name=name).delete()
        row = PauseFactory(scope=scope, name=name, type="worker" if scope == "handler" else "", paused_at=clock.now())
        self._paused.append((row, time.time(), now + self.pick.uniform(4, 9)))

    def resume(self, now: float) -> None:
        for paused in [one for one in self._paused if one[2] <= now]:
            self._paused.remove(paused)
            row, since, _until = paused
            self.pauses.append(Paused(pause_of_scope(row.scope, row.name), since, time.time()))
            Pause.objects.filter(pk=row.pk).update(ends_at=clock.now())

    def fault(self, now: float) -> None:
        down = self.directory / DOWN
        if down.exists() and now >= self._up_at:
            down.unlink()
        elif not down.exists() and self.pick.random() < 0.04:
            down.touch()
            self._up_at = now + self.pick.uniform(3, 12)

    def kill(self, now: float) -> None:
        self.commands.stop(self.consumers.pop(0), signal.SIGKILL)
        self.kills.append(time.time())
        self.consumers.append(self.consumer())
        self._kill_at = now + self.pick.uniform(15, 30)

    def look(self) -> None:
        for name, state, since in Breaker.objects.values_list("name", "state", "since"):
            if since is not None:
                self.circuits[name][since.timestamp()] = state

    def finish(self) -> None:
        """Resume everything, and wait until nothing waits."""
        (self.directory / DOWN).unlink(missing_ok=True)
        self.resume(float("inf"))

        def is_over() -> bool:
            self.look()
            return not SchedulerExecution.objects.in_state(*OPEN_STATES).exists()

        wait_for(is_over, "all has ended", 240)

    def openings(self, name: str) -> list[tuple[float, float]]:
        states = sorted(self.circuits[name].items())
        ends = [*(at for at, _state in states), time.time()][1:]
        return [(at, end) for (at, state), end in zip(states, ends, strict=True) if state == "open"]


def test_processes_start_only_what_the_model_lets_start(commands: Commands, transport: str, tmp_path: Path) -> None:
    print(f"seed {SEED}")  # noqa: T201 - shown if the test fails
    site = Site(commands, tmp_path, transport)
    site.work(time.time() + SECONDS)
    site.finish()
    found, asked = spans(tmp_path, site.kills), site.asked
    problems: Counter[str] = Counter()
    begins = {
        (pk, number): at.timestamp()
        for pk, number, at in Attempt.objects.values_list("execution", "number", "started_at")
    }
    names = {(one.handler, one.key) for one in asked.values()}
    for handler, key in sorted(names):
        limit = handler_named("worker", handler).limit  # type: ignore[union-attr]
        own = [span for span in found if (asked[span.execution].handler, asked[span.execution].key) == (handler, key)]
        if limit is not None:
            problems["too many at once"] += most_at_once(own) > (limit.at_once or 10**6)
            starts = [begins[span.execution, span.attempt] for span in own if (span.execution, span.attempt) in begins]
            problems["too many within the span"] += exceeded_spans(starts, limit, 0.1)
            problems["too many marks within the span"] += exceeded_spans([span.begin for span in own], limit, 2.0)
    problems["started in a pause"] = len(paused_starts(found, asked, site.pauses, LATENCY))
    openings = 0
    for name in BROKEN:
        own = [span for span in found if asked[span.execution].handler == name]
        openings += len(site.openings(name))
        problems["probes too close"] += close_probes(own, site.openings(name), BREAKER.probe_every, 0.7)
    waits = longest_waits(found, asked)
    print(  # noqa: T201 - the figures of the acceptance test
        f"\n{transport.split(':')[0]}: {len(asked)} runs, {len(found)} attempts, {len(site.kills)} kills, "
        f"{len(site.pauses)} pauses, {openings} openings of a breaker; {dict(problems)}; longest waits "
        + ", ".join(f"{handler}/{key} {wait:.1f} s" for (handler, key), wait in sorted(waits.items()))
    )
    assert not any(problems.values()), problems
    states = Counter(SchedulerExecution.objects.filter(pk__in=asked).values_list("state", flat=True))
    assert states == {"succeeded": len(asked)}
    succeeded = Attempt.objects.filter(execution__in=asked, outcome="succeeded").values_list("execution", flat=True)
    wait_for(lambda: Counter(succeeded.all()) == dict.fromkeys(asked, 1), "each run has succeeded once")
    wait_for(lambda: not LimitPlace.objects.exists(), "no place is left")
    for handler in NAMES:
        own_waits = [wait for (name, _key), wait in waits.items() if name == handler]
        assert not own_waits or max(own_waits) < 3 * min(own_waits) + 60, f"a key of {handler} is starved"
