"""The processes of a site. They are killed and stopped at random, and started again."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

from django.db import connection

from tests.e2e.halted import halt, is_free, send
from tests.e2e.policy_model import Model
from tests.support import Commands, wait_for

LEASE = 4
Process = Popen[bytes]


def descendants(pid: int) -> list[int]:
    """The children of a process, their children, and so on."""
    children = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            children[int(path.read_text().rpartition(")")[2].split()[1])].append(int(path.parent.name))
    found = [pid]
    for one in found:
        found += children[one]
    return found[1:]


class Processes:
    """Two producers and two consumers. `halts` says when which processes of consumers were killed or stopped."""

    def __init__(self, commands: Commands, broker_url: str, pick: random.Random, model: Model, seconds: float) -> None:
        self._commands, self._pick, self._model = commands, pick, model
        self._environment = {"BROKER_URL": broker_url, "CRON_LEASE_SECONDS": str(LEASE), "CRON_SECONDS": "true"}
        self.done: Counter[str] = Counter()
        self.halts: list[tuple[float, set[int]]] = []
        self._running: dict[str, list[Process]] = {"run_scheduler": [], "run_worker": []}
        self._starting: list[tuple[Process, float]] = []
        self._stopped: tuple[list[int], float, float] | None = None
        self._missing: tuple[float, float] | None = None
        """Since when and until when no producer runs."""
        for name in [*self._running] * 2:
            self._start(name, time.time())
        commands.ready(*(process for processes in self._running.values() for process in processes))
        now = time.time()
        self._kill_at, self._stop_at, self._leave_at = now + seconds / 4, now + seconds / 3, now + seconds / 2
        if seconds > 60:
            self._kill_at, self._stop_at, self._leave_at = now + 5, now + 11, now + 30

    def _start(self, name: str, since: float) -> None:
        options = ["--concurrency", "6"] if name == "run_worker" else []
        process = self._commands.start(name, *options, **self._environment)
        self._running[name].append(process)
        self._starting.append((process, since))

    def turn(self, now: float) -> None:
        """Kill, stop and start processes whose time has come."""
        self._come_back(now)
        if now >= self._kill_at:
            self._kill_at = now + self._pick.uniform(6, 20)
            self._kill(self._pick.choice(["run_scheduler", "run_worker"]))
        if now >= self._stop_at and self._stopped is None:
            self._stop_at = now + self._pick.uniform(20, 50)
            self._stop(self._pick.choice(["run_scheduler", "run_worker", "run_worker"]))
        if now >= self._leave_at and self._missing is None:
            self._leave_at = now + self._pick.uniform(50, 120)
            self._leave(now)

    def _come_back(self, now: float) -> None:
        for process, since in list(self._starting):
            if " ready" in self._commands.log(process) or process.poll() is not None:
                self._starting.remove((process, since))
                self._model.outages.append((since, now))
        if self._stopped is not None and now >= self._stopped[2]:
            self._go_on()
        if self._missing is not None and now >= self._missing[1]:
            for _number in range(2):
                self._start("run_scheduler", self._missing[0])
            self._missing = None

    def _kill(self, name: str) -> None:
        if not self._running[name]:
            return
        process = self._running[name].pop(self._pick.randrange(len(self._running[name])))
        self._end(name, process)
        self._start(name, time.time())
        self.done[f"kill {name}"] += 1

    def _end(self, name: str, process: Process) -> None:
        if name == "run_worker":
            halt(process.pid)  # so that it starts no further child while its children are looked for
            self.halts.append((time.time(), set(descendants(process.pid))))
        self._commands.stop(process, signal.SIGKILL)

    def _stop(self, name: str) -> None:
        """Stop a process and all its children, as a machine that is suspended, for longer than its lease."""
        if not self._running[name]:
            return
        process, at = self._pick.choice(self._running[name]), time.time()
        halt(process.pid)
        pids = [process.pid, *descendants(process.pid)]
        halt(*pids)
        if connection.vendor == "sqlite" and not is_free([]):
            for pid in pids:  # it would keep all others from the database
                send(pid, signal.SIGCONT)
            return
        self._stopped = pids, at, at + LEASE + self._pick.uniform(1, 4)
        if name == "run_worker":
            self.halts.append((at, set(pids)))
        self.done[f"stop {name}"] += 1

    def _go_on(self) -> None:
        if self._stopped is not None:
            for pid in self._stopped[0]:
                send(pid, signal.SIGCONT)
            self._model.outages.append((self._stopped[1], time.time()))
            self._stopped = None

    def _leave(self, now: float) -> None:
        """Let no producer run for some seconds."""
        for process in self._running["run_scheduler"]:
            self._end("run_scheduler", process)
        self._running["run_scheduler"] = []
        is_long = now - self._model.outages[0][0] > 100 and self._pick.random() < 0.25
        self._missing = now, now + (70.0 if is_long else self._pick.uniform(2, 14))
        self.done["downtime"] += 1

    def finish(self) -> None:
        """Let all processes run."""
        self._go_on()
        if self._missing is not None:
            self._missing = self._missing[0], 0.0
        self._kill_at = self._stop_at = self._leave_at = float("inf")

        def is_ready() -> bool:
            self.turn(time.time())
            return not self._starting

        wait_for(is_ready, "the processes are ready")
