"""The producers and consumers of a chaos trial (`benchmarks.chaos`), and what was killed of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.site import ROOT


class Kill(NamedTuple):
    """A SIGKILL of this trial.

    Args:
        kind: `producer`, `consumer` or `child`.
    """

    at: datetime
    kind: str
    pid: int


@dataclass
class Fleet:
    """Starts, kills and stops the producers and consumers of one trial (one run of this benchmark)."""

    directory: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    arguments: dict[str, list[str]] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    broker_restarts: int = 0
    wiped_at: datetime | None = None

    def start(self, name: str, *arguments: str) -> None:
        """Start a command under a name, and keep its arguments for restarts."""
        self.arguments[name] = list(arguments)
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self, name: str) -> None:
        """Kill a command with SIGKILL and restart it at once."""
        process = self.processes[name]
        self.kills.append(Kill(datetime.now(UTC), name.split("-")[0], process.pid))
        process.kill()
        process.wait()
        self.start(name, *self.arguments[name])

    def kill_child(self, name: str, pick: random.Random) -> None:
        """Kill one of a consumer's children with SIGKILL. The child may be running a handler or waiting for a task."""
        pids = [pid for server in children(self.processes[name].pid) for pid in children(server)]
        if pids:
            pid = pick.choice(pids)
            at = datetime.now(UTC)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.kills.append(Kill(at, "child", pid))

    def stop(self) -> None:
        """Send SIGTERM to all commands, and SIGKILL to every command that is still running 20 seconds later."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def children(pid: int) -> list[int]:
    """Process ids of the direct children of a process."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
