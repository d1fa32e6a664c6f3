"""Real producers and consumers under a steady load. Each run leaves a mark outside the database."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from django.db import connections
from django.utils import timezone as clock

from scheduling.broker import BrokerError
from scheduling.broker.rabbitmq import RabbitBroker
from scheduling.core.lifecycle import State
from scheduling.execution.run_now import run_now
from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, wait_for

OPEN = (State.CLAIMED.value, State.QUEUED.value, State.RUNNING.value, State.RETRYING.value)


class Fleet:
    """Two producers, three consumers, and a caller that asks for runs. The caller publishes half of them itself.

    The other half are rows in state claimed, which the producers publish.
    """

    def __init__(self, commands: Commands, marks: Path, url: str, queue_type: str, a_second: float) -> None:
        self.commands, self.marks, self.a_second = commands, marks, a_second
        marks.mkdir()
        commands.environment |= {"BROKER_URL": url, "CRON_QUEUE_TYPE": queue_type}
        self.row: Scheduler = SchedulerFactory(rare=True, handler="tests.mark", params={"directory": str(marks)})
        self.broker = RabbitBroker(url, queue_type=queue_type)
        self.processes = [commands.start("run_scheduler") for _ in range(2)]
        self.processes += [commands.start("run_worker", "--concurrency", "2") for _ in range(3)]
        commands.ready(*self.processes)
        self.asked: list[int] = []
        self._over = threading.Event()
        self._caller = threading.Thread(target=self._call, daemon=True)

    def begin(self) -> None:
        """Begin to ask for runs."""
        self._caller.start()
        wait_for(lambda: len(self.starts()) > self.a_second, "runs start")

    def finish(self, seconds: float = 120.0) -> None:
        """Ask for no more runs, and wait until all of them have ended."""
        self._over.set()
        self._caller.join(60)
        wait_for(lambda: not SchedulerExecution.objects.filter(state__in=OPEN).exists(), "all runs ended", seconds)

    def starts(self) -> dict[int, float]:
        """The time at which each run wrote its last mark, by the execution's id. The runs take no time."""
        return {int(file.stem): file.stat().st_mtime for file in self.marks.glob("*.txt")}

    def gap(self, since: float, until: float | None = None) -> float:
        """The longest time without the start of a run, in seconds."""
        times = [at for at in sorted(self.starts().values()) if at >= since and (until is None or at <= until)]
        times = [since, *times, *([until] if until is not None else [])]
        return max((after - before for before, after in pairwise(times)), default=0.0)

    def count(self) -> str:
        """The number of runs, in words."""
        return f"{len(self.asked)} runs, {len(self._lost())} lost, {len(self._doubled())} doubled"

    def audit(self) -> None:
        """Check that every run that was asked for ran exactly once, and that no process was replaced."""
        assert (self._lost(), self._doubled()) == ([], [])
        states = Counter(SchedulerExecution.objects.filter(pk__in=self.asked).values_list("state", flat=True))
        assert set(states) == {State.SUCCEEDED.value}
        assert [process.poll() for process in self.processes] == [None] * len(self.processes)

    def _lost(self) -> list[int]:
        marked = self.starts()
        return [pk for pk in self.asked if pk not in marked]

    def _doubled(self) -> list[int]:
        files = self.marks.glob("*.txt")
        return [int(file.stem) for file in files if file.read_text().count("start ") > 1]

    def warnings(self) -> list[int]:
        """How many lines of level WARN or ERROR each process has logged about an outage of the broker."""
        words = ("RabbitMQ", "cannot be used", "Nothing listens")
        logs = [self.commands.log(process).splitlines() for process in self.processes]
        return [
            sum(("WARN" in line or "ERROR" in line) and any(word in line for word in words) for line in lines)
            for lines in logs
        ]

    def close(self) -> None:
        """End the processes and the caller."""
        self._over.set()
        if self._caller.is_alive():
            self._caller.join(60)
        self.commands.end()
        self.broker.close()

    def _call(self) -> None:
        begun, number = time.monotonic(), 0
        try:
            while not self._over.is_set():
                number += 1
                with suppress(BrokerError):  # the row is there, and a sweep publishes it
                    self.asked.append(self._ask(number))
                self._over.wait(max(0.0, begun + number / self.a_second - time.monotonic()))
        finally:
            connections.close_all()

    def _ask(self, number: int) -> int:
        if number % 2:
            return run_now(self.row, self.broker).pk
        now = clock.now()
        columns = {"state": State.CLAIMED.value, "wake_at": now - timedelta(seconds=1), "published_at": None}
        (row,) = ManualExecutionFactory.bulk(1, scheduler=self.row, params=self.row.params, **columns)
        return int(row.pk)
