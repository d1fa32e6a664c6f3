"""Real producers, consumers and a caller on a database server of a test. The marks of the runs are files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import ROOT, Commands, wait_for

RATE = float(os.environ.get("TEST_CLUSTER_RATE", "20"))
"""Runs a second."""

LONG_SECONDS = float(os.environ.get("TEST_CLUSTER_SECONDS", "25"))
"""The length of the long runs: as long as a fault, so that they are under way during all of it."""

Row = tuple[int, str, int, dict[str, Any]]
"""Id, state, attempts and params of an execution."""


@dataclass
class Audit:
    """What happened to the runs that were asked for. The sets hold numbers of runs.

    Args:
        asked: the runs whose row was committed, with the row's id.
        missing: their row is not there any more.
        lost: their row is there, and they have not run.
        doubled: they have started twice or more.
        strange: their row says that they succeeded, and no mark does.
    """

    asked: dict[int, int] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)
    lost: set[int] = field(default_factory=set)
    doubled: set[int] = field(default_factory=set)
    strange: set[int] = field(default_factory=set)

    def __str__(self) -> str:
        return (
            f"{len(self.asked)} runs, missing {len(self.missing)}, lost {len(self.lost)}, "
            f"doubled {sorted(self.doubled)}, under another's row {len(self.strange)}"
        )


class DatabaseFleet:
    """Two producers, three consumers with four slots each, and a caller.

    Args:
        rows: reads all executions.
    """

    def __init__(self, folder: Path, url: str, rows: Callable[[], list[Row]], **environment: str) -> None:
        self.folder, self._rows = folder, rows
        folder.mkdir()
        (folder / "marks").mkdir()
        self.commands = Commands(folder, DATABASE_URL=url, **environment)
        for arguments in (["migrate", "-v0"], ["shell", "-c", _SCHEDULE]):
            code, text = self.commands.run(*arguments)
            assert code == 0, text
        self.processes = [self.commands.start("run_scheduler") for _ in range(2)]
        self.processes += [self.commands.start("run_worker", "--concurrency", "4") for _ in range(3)]
        self.commands.ready(*self.processes)
        arguments = [sys.executable, "-m", "tests.cluster.load", str(folder), str(RATE), str(LONG_SECONDS)]
        with (folder / "load.log").open("wb") as log:
            environ = {**self.commands.environment, "PYTHONPATH": str(ROOT)}
            self._caller = subprocess.Popen(arguments, cwd=ROOT, env=environ, stdout=log, stderr=subprocess.STDOUT)
        wait_for(lambda: len(self.starts()) > RATE, "runs start")

    def starts(self) -> list[float]:
        """When the short runs have written their marks, in epoch seconds."""
        files = (self.folder / "marks").glob("*/*.txt")
        return [file.stat().st_mtime for file in files if int(file.parent.name) % round(5 * RATE) != 1]

    def steady(self, seconds: float) -> None:
        """Let the load go on for this long."""
        time.sleep(seconds)
        assert self._caller.poll() is None, (self.folder / "load.log").read_text()

    def next_start(self, since: float) -> float:
        """Wait for the next start of a run; returns how many seconds after `since` it came."""
        return wait_for(lambda: [at for at in self.starts() if at > since], "runs start again") and (
            min(at for at in self.starts() if at > since) - since
        )

    def doctor(self) -> list[str]:
        """What the doctor finds wrong now."""
        _code, text = self.commands.run("doctor", "--format", "json")
        start = text.find("{\n")
        return [finding["seen"] for finding in json.loads(text[start:])["findings"] if finding["level"] == "fail"]

    def finish(self) -> Audit:
        """Ask for no more runs, wait until all have ended, and look at the marks. No process was replaced."""
        (self.folder / "enough").touch()
        self._caller.wait(60)
        over = ("succeeded", "failed", "cancelled")
        wait_for(lambda: all(state in over for _, state, _, _ in self._rows()), "all runs have ended", 180)
        assert [process.poll() for process in self.processes] == [None] * len(self.processes)
        return self._audit()

    def close(self) -> None:
        """End all processes."""
        self._caller.kill()
        self._caller.wait()
        self.commands.end()

    def _audit(self) -> Audit:
        lines = (self.folder / "asked").read_text().splitlines()
        audit = Audit(asked={int(line.split()[0]): int(line.split()[1]) for line in lines})
        rows = {int(Path(params["directory"]).name): state for _, state, _, params in self._rows() if params}
        begun: dict[int, int] = {}
        for file in (self.folder / "marks").glob("*/*.txt"):
            starts = [line for line in file.read_text().splitlines() if line.startswith("start ")]
            begun[int(file.parent.name)] = begun.get(int(file.parent.name), 0) + len(starts)
        audit.missing = {number for number in audit.asked if number not in rows}
        audit.lost = {number for number in audit.asked if number in rows and number not in begun}
        audit.doubled = {number for number, starts in begun.items() if starts > 1}
        audit.strange = {number for number, state in rows.items() if state == "succeeded" and number not in begun}
        return audit


_SCHEDULE = """
from scheduling.models import Scheduler, Worker
Scheduler.objects.all().delete()
Scheduler.objects.create(worker=Worker.objects.get(name="tests.mark"), schedule="0 0 1 1 *", status=True)
"""
