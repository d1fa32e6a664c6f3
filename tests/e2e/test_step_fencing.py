"""An attempt is stopped for longer than its lease, and goes on while the next attempt runs. It writes nothing.

`TEST_FENCED=100` tries each door a hundred times instead of once.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection

from scheduling.api import Asked, run_many
from scheduling.execution.own_broker import close_own_broker
from scheduling.execution.results import result_of
from scheduling.models import Artefact, Attempt, Output, RunStep, SchedulerExecution
from tests.e2e.halted import halt, send, state
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

COUNT = int(os.environ.get("TEST_FENCED", "1"))
AT_ONCE = int(os.environ.get("TEST_FENCED_AT_ONCE", "24"))
LEASE_SECONDS = 5

TRANSACTIONS = ("step", "each", "atomic", "atomic without checkpoint")
DOORS = [
    (name, False) for name in (*TRANSACTIONS, "step outside", "checkpoint", "attach", "progress", "output", "result")
]
INSIDE = [(name, True) for name in ("step outside", "attach")]
INSIDE_TRANSACTIONS = [(name, True) for name in TRANSACTIONS]
"""With SQLite, a process that is stopped inside a transaction keeps all others from writing. No attempt can follow."""


class Fencing:
    """Runs at their doors: their consumer, their first attempts, and the consumer of their second attempts."""

    def __init__(self, commands: Commands, directory: Path, runs: dict[int, tuple[str, bool]], url: str) -> None:
        self.commands, self.directory, self.runs = commands, directory, runs
        self.environment = {"BROKER_URL": url, "CRON_LEASE_SECONDS": str(LEASE_SECONDS)}
        self.former = self.consumer()
        held = [wait_for(lambda pk=pk: self.lines(pk, 1, "held"), "the first attempt is held")[0] for pk in runs]
        self.children, self.forkserver = [int(line[2]) for line in held], int(held[0][3])
        wait_for(lambda: not self.rows().filter(pid=None).exists(), "the consumer has stored the process ids")

    def consumer(self) -> subprocess.Popen[bytes]:
        return self.commands.start("run_worker", "--concurrency", str(len(self.runs)), **self.environment)

    def rows(self) -> Any:
        return SchedulerExecution.objects.filter(pk__in=list(self.runs))

    def lines(self, pk: int, attempt: int, word: str) -> list[list[str]]:
        """What an attempt has noted that begins with this word: the word, the number, process and parent process."""
        found = [line.split() for line in marks(self.directory, pk)]
        return [words for words in found if words[0] == word and words[-3] == str(attempt)]

    def stop(self, which: str) -> None:
        """Stop the first attempts, and wait until the second ones are held at their doors."""
        if which == "child":
            # The forkserver would kill the children of a consumer that has died.
            halt(self.forkserver)
            self.commands.stop(self.former, signal.SIGKILL)
            halt(*self.children)
        else:
            halt(self.former.pid, *([self.forkserver, *self.children] if which == "both" else []))
        self.consumer()
        for pk in self.runs:
            wait_for(lambda pk=pk: self.lines(pk, 2, "held"), "the second attempt is held")
        wait_for(lambda: not self.rows().filter(pid=None).exists(), "the consumer has stored the process ids")

    def resume(self, which: str, pick: random.Random) -> None:
        """Let the first attempts go through their doors, and wait until nothing of them is left."""
        (self.directory / "go.1").touch()
        if which == "consumer":
            for pk in self.runs:
                wait_for(lambda pk=pk: self.lines(pk, 1, "over"), "the first attempt has gone to its door")
        for pid in pick.sample(self.children, len(self.children)):
            send(pid, signal.SIGCONT)
        if which == "both":
            time.sleep(pick.uniform(0, 0.5))  # the consumer kills those that have not gone to their doors by then
        if which != "child":
            self._resume_consumer()
        wait_for(lambda: all(state(pid) in ("", "Z") for pid in self.children), "the children have ended")
        if which == "child":
            send(self.forkserver, signal.SIGCONT)
            wait_for(lambda: state(self.forkserver) in ("", "Z"), "the forkserver has ended")

    def _resume_consumer(self) -> None:
        for pid in (self.forkserver, self.former.pid):
            send(pid, signal.SIGCONT)
        dropped = "another process owns this execution by now"
        wait_for(lambda: self.commands.log(self.former).count(dropped) >= len(self.runs), "the results are dropped")
        assert self.commands.stop(self.former) == 0

    def of_first_attempts(self) -> dict[str, Any]:
        """Everything that the first attempts have stored."""
        keys = list(self.runs)
        rows = [
            model.objects.filter(execution__in=keys, **{number: 1}).order_by("pk").values()
            for model, number in ((Output, "attempt"), (RunStep, "attempt"), (Attempt, "number"))
        ]
        effects = [name for name in names() if int(name.split(":")[0]) in self.runs and name.split(":")[2] == "1"]
        return {"rows": [list(found) for found in rows], "effects": effects}

    def first_files(self, media: Path) -> set[str]:
        """The files and the artefacts of the first attempts."""
        rows = Artefact.objects.filter(execution__in=list(self.runs), attempt=1)
        files = {str(path) for pk in self.runs for path in media.glob(f"artefacts/{pk}/1-*/*")}
        return files | {str(row) for row in rows.values_list("execution", "filename", "file")}

    def executions(self) -> list[dict[str, Any]]:
        """The rows of the executions, without what a heartbeat and a confirm change."""
        ignored = {"wake_at", "published_at"}
        return [{k: v for k, v in row.items() if k not in ignored} for row in self.rows().order_by("pk").values()]


def names() -> list[str]:
    """The effects in the database: `<execution>:<name>:<attempt>:<random>`."""
    return sorted(Group.objects.values_list("name", flat=True))


def check_second(fencing: Fencing, pk: int, door: str, media: Path) -> None:
    """Check that the second attempt has written through its door, and only once."""
    assert result_of(pk, 2) == [door, 2]
    assert list(Attempt.objects.filter(execution=pk).order_by("number").values_list("outcome", flat=True)) == [
        "crashed",
        "succeeded",
    ]
    effects = [name.split(":")[1:3] for name in names() if name.startswith(f"{pk}:")]
    assert effects == ([[door.split()[0], "2"]] if door in TRANSACTIONS else [])
    marked = list(RunStep.objects.filter(execution=pk).values_list("attempt", flat=True))
    stepped = door in (*TRANSACTIONS, "step outside", "checkpoint") and door != "atomic without checkpoint"
    assert marked == ([2] if stepped else [])
    assert len(fencing.lines(pk, 2, "effect")) == (door == "step outside")
    files = {path.read_text() for path in media.glob(f"artefacts/{pk}/2-*/*")}
    assert files == ({"2"} if door == "attach" else set())
    results = Artefact.objects.filter(execution=pk).results()
    assert list(results.values_list("attempt", flat=True)) == ([2] if files else [])
    assert SchedulerExecution.objects.get(pk=pk).progress == ("2/2" if door == "progress" else "")
    printed = "".join(Output.objects.filter(execution=pk).values_list("text", flat=True))
    assert "words of 1" not in printed
    assert ("words of 2" in printed) == (door == "output")


@pytest.fixture
def url(broker_url: str, settings: Any) -> Iterator[str]:
    """Provide the URL of each transport, which this process uses, too."""
    settings.BROKER_URL = broker_url
    yield broker_url
    close_own_broker()


@pytest.mark.parametrize("which", ["both", "child", "consumer"])
def test_a_stopped_attempt_writes_nothing_when_it_goes_on(
    commands: Commands, url: str, tmp_path: Path, which: str
) -> None:
    User.objects.create(username="visited")
    pick = random.Random(f"{which} {COUNT}")
    cases = [*DOORS, *INSIDE, *([] if connection.vendor == "sqlite" else INSIDE_TRANSACTIONS)] * COUNT
    tried: Counter[str] = Counter()
    media = tmp_path / "media"
    environment = {"BROKER_URL": url, "CRON_LEASE_SECONDS": str(LEASE_SECONDS)}
    commands.ready(commands.start("run_scheduler", **environment))
    for first in range(0, len(cases), AT_ONCE):
        directory = tmp_path / str(first)
        directory.mkdir()
        batch = cases[first : first + AT_ONCE]
        params = {"directory": str(directory), "prefix": "visited"}
        asked = run_many([Asked("tests.door", {**params, "door": name, "inside": inside}) for name, inside in batch])
        runs = {submitted.id: case for submitted, case in zip(asked, batch, strict=True)}
        fencing = Fencing(commands, directory, runs, url)
        fencing.stop(which)
        former, files, executions = fencing.of_first_attempts(), fencing.first_files(media), fencing.executions()
        fencing.resume(which, pick)
        assert fencing.of_first_attempts() == former
        assert fencing.executions() == executions
        left = fencing.first_files(media)
        # A child that is killed while it writes a file leaves what was there before. Retention removes it.
        assert left <= files if which == "both" else not left
        for pk, (name, inside) in runs.items():
            ended = ["".join(line[1:-3]) or "killed" for line in fencing.lines(pk, 1, "over")] or ["killed"]
            tried[f"{name}{' inside' if inside else ''}: {ended[0]}"] += 1
            assert inside or not fencing.lines(pk, 1, "effect")
        (directory / "go.2").touch()
        for pk, (name, _) in runs.items():
            wait_for(lambda pk=pk: SchedulerExecution.objects.get(pk=pk).state == "succeeded", "the work is done")
            check_second(fencing, pk, name, media)
        commands.stop(commands.started[-1])
        print(first + len(batch), "refused", dict(tried), flush=True)  # noqa: T201 - shown if the test fails


def test_a_stopped_child_keeps_its_run_while_its_consumer_lives(commands: Commands, tmp_path: Path) -> None:
    (asked,) = run_many([Asked("tests.door", {"directory": str(tmp_path), "door": "step"})])
    commands.ready(commands.start("run_scheduler", CRON_LEASE_SECONDS="3"))
    fencing = Fencing(commands, tmp_path, {asked.id: ("step", False)}, "database://")
    halt(*fencing.children)
    until = fencing.rows().get().wake_at
    wait_for(lambda: (fencing.rows().get().wake_at - until).total_seconds() > 2 * LEASE_SECONDS, "two leases are over")
    (tmp_path / "go.1").touch()
    send(fencing.children[0], signal.SIGCONT)
    wait_for(lambda: fencing.rows().get().state == "succeeded", "the work is done")
    assert fencing.rows().get().attempt == 1
    assert [name.split(":")[1:3] for name in names()] == [["step", "1"]]
