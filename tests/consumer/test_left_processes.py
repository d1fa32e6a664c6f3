"""Processes that a run has started end with it. With `leaves_processes`, those of a run that ends by itself live on."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from scheduling.execution.cancel import cancel
from scheduling.models import Attempt, Output, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import ROOT, Commands, marks, wait_for

pytestmark = [
    pytest.mark.processes,
    pytest.mark.any_database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers"),
]

Start = Callable[..., SchedulerExecution]


def pids(directory: Path, execution: SchedulerExecution) -> list[int]:
    """Return the process ids of the programs in the run's session and of its daemon, as far as they were started."""
    programs, daemon = directory / f"programs-{execution.pk}.txt", directory / f"daemon-{execution.pk}.txt"
    found = programs.read_text().split() if programs.exists() else []
    return [int(pid) for pid in [*found, *(daemon.read_text().split()[:1] if daemon.exists() else [])]]


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def files_of(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            found.add(os.readlink(entry))
    return found


def lives(pid: int) -> bool:
    """Return whether a process runs. A zombie does not run."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def all_live(directory: Path, execution: SchedulerExecution) -> bool:
    found = pids(directory, execution)
    return bool(found) and all(map(lives, found))


def all_ended(directory: Path, execution: SchedulerExecution) -> bool:
    return not any(map(lives, pids(directory, execution)))


def state(execution: SchedulerExecution) -> str:
    return str(SchedulerExecution.objects.values_list("state", flat=True).get(pk=execution.pk))


def note(execution: SchedulerExecution) -> str:
    """Return the line of the run's output that names the processes; empty if there is none."""
    text = "".join(Output.objects.filter(execution=execution).order_by("sequence").values_list("text", flat=True))
    found = re.search(r"^\S+ NOTE Left running: (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Provide a function that queues an execution. Kill the processes of all executions afterwards."""
    made: list[SchedulerExecution] = []

    def queue(handler: str = "tests.leave", time_limit: int | None = None, **params: object) -> SchedulerExecution:
        row = SchedulerFactory(
            rare=True,
            handler=handler,
            time_limit=time_limit,
            max_retries=0,
            params={"directory": str(tmp_path), **params},
        )
        made.append(ManualExecutionFactory(scheduler=row))
        return made[-1]

    yield queue
    for execution in made:
        for pid in pids(tmp_path, execution):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("fails", [False, True])
def test_they_live_on_and_are_named(commands: Commands, tmp_path: Path, start: Start, fails: bool) -> None:
    execution = start(fails=fails)
    worker = commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: state(execution) == ("failed" if fails else "succeeded"), "it is over")
    program, daemon = pids(tmp_path, execution)
    assert re.fullmatch(rf"{program} sleep, {daemon} python\S*", note(execution))
    wait_for(lambda: f"Left running: {program}" in commands.log(worker), "the consumer has left them")
    following = [start("tests.daemon") for _ in range(3)]
    wait_for(lambda: all(state(one) == "succeeded" for one in following), "further runs of this consumer are over")
    assert all_live(tmp_path, execution)
    assert commands.stop(worker) == 0
    assert all_live(tmp_path, execution)


@pytest.mark.parametrize("handler", ["tests.daemon", "tests.daemon_fresh"])
def test_without_the_option_they_end(commands: Commands, tmp_path: Path, start: Start, handler: str) -> None:
    execution = start(handler)
    commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: state(execution) == "succeeded", "it is over")
    wait_for(lambda: all_ended(tmp_path, execution), "its daemon is ended")
    assert note(execution) == ""


def test_they_live_on_when_the_consumer_stops_at_once(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start()
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", "1")
    assert code == 0, log
    assert all_live(tmp_path, execution)


def test_they_live_on_when_the_consumer_is_killed(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution, running = start(), start("tests.leave", seconds=600)
    worker = commands.start("run_worker", "--concurrency", "2")
    wait_for(lambda: marks(tmp_path, running.pk), "the other one runs")
    wait_for(lambda: "Left running" in commands.log(worker), "the consumer has left them")
    commands.stop(worker, signal.SIGKILL)
    wait_for(lambda: all_ended(tmp_path, running), "those of the run that has not ended are killed")
    assert all_live(tmp_path, execution)


def test_their_parent_ends_with_the_last_of_them(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start()
    worker = commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: "Left running" in commands.log(worker), "the consumer has left them")
    program, daemon = pids(tmp_path, execution)
    keeper = Attempt.objects.get(execution=execution).pid
    assert keeper
    assert {parent_of(program), parent_of(daemon)} == {keeper}
    wait_for(lambda: files_of(keeper) == {"/dev/null"}, "the keeper has closed the output and all other files")
    os.killpg(keeper, signal.SIGTERM)  # a program may end its own group; only the daemon is not in this group
    wait_for(lambda: not lives(program), "the program is ended")
    assert lives(daemon)
    assert parent_of(daemon) == keeper
    os.kill(daemon, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{keeper}").exists(), "the keeper is ended and reaped")
    following = start("tests.mark")
    wait_for(lambda: state(following) == "succeeded", "the consumer goes on")


def test_they_end_if_their_parent_is_killed(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start()
    worker = commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: "Left running" in commands.log(worker), "the consumer has left them")
    keeper = Attempt.objects.get(execution=execution).pid
    assert keeper
    os.kill(keeper, signal.SIGKILL)
    wait_for(lambda: all_ended(tmp_path, execution), "they are ended")


def test_those_of_a_neighbour_end_with_it(commands: Commands, tmp_path: Path, start: Start) -> None:
    neighbour = start("tests.daemon", seconds=600)
    worker = commands.start("run_worker", "--concurrency", "2")
    wait_for(lambda: marks(tmp_path, neighbour.pk), "the neighbour runs")
    (daemon,) = pids(tmp_path, neighbour)
    executions = [start() for _ in range(2)]
    wait_for(lambda: all(state(one) == "succeeded" for one in executions), "the others are over")
    assert lives(daemon)
    assert cancel(neighbour.pk, "ann") == "asked"
    wait_for(lambda: not lives(daemon), "the neighbour's daemon is ended")
    assert all(all_live(tmp_path, execution) for execution in executions)
    assert commands.stop(worker) == 0


def test_a_time_out_ends_them(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start(time_limit=1, seconds=600)
    commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: state(execution) == "failed", "it is over")
    attempt = Attempt.objects.get(execution=execution)
    assert (attempt.outcome, attempt.exit_code, attempt.signal) == ("timed_out", 0, None)
    wait_for(lambda: all_ended(tmp_path, execution), "they are ended")
    assert note(execution) == ""


def test_a_time_out_ends_them_if_the_handler_returns_then(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start(time_limit=1, seconds=600, ignores_its_end=True)
    commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: state(execution) == "failed", "it is over")
    assert Attempt.objects.get(execution=execution).outcome == "timed_out"
    wait_for(lambda: all_ended(tmp_path, execution), "they are ended")
    assert note(execution) == ""


def test_a_cancel_ends_them(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start(seconds=600)
    commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    assert cancel(execution.pk, "ann") == "asked"
    wait_for(lambda: state(execution) == "cancelled", "it is cancelled")
    wait_for(lambda: all_ended(tmp_path, execution), "they are ended")
    assert note(execution) == ""


def test_a_shutdown_ends_them(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start(seconds=600)
    worker = commands.start("run_worker", "--concurrency", "1", CRON_GRACE_SECONDS="1")
    wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    assert commands.stop(worker) == 0
    assert state(execution) == "queued"
    wait_for(lambda: all_ended(tmp_path, execution), "they are ended")


def test_a_crash_ends_them(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start(seconds=600)
    commands.start("run_worker", "--concurrency", "1")
    (line,) = wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    os.kill(int(line.split()[2]), signal.SIGKILL)
    wait_for(lambda: state(execution) == "failed", "it has crashed")
    wait_for(lambda: all_ended(tmp_path, execution), "they are ended")


def test_a_result_that_is_refused_ends_them(commands: Commands, tmp_path: Path, start: Start) -> None:
    """Another attempt has taken over the row. It starts the processes again."""
    execution = start(loses_its_row=True)
    worker = commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: "not recorded" in commands.log(worker), "the result is refused")
    wait_for(lambda: all_ended(tmp_path, execution), "they are ended")


def test_many_are_named_in_one_short_line(commands: Commands, tmp_path: Path, start: Start) -> None:
    execution = start(programs=15)
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", "1")
    assert code == 0, log
    names = note(execution).split(", ")
    assert len(names) == 11
    assert names[-1] == "6 more"
    assert len(note(execution)) <= 250
    assert all_live(tmp_path, execution)


KEEPER = """
import os, signal, subprocess, sys
from scheduling.consumer.keeper import become_keeper

program = subprocess.Popen(["sleep", "1"])
print("printed", flush=True)
signal.setitimer(signal.ITIMER_REAL, 0.3)
sys.executable = sys.argv[1] or sys.executable
become_keeper()
try:
    os.kill(program.pid, 0)
except ProcessLookupError:
    sys.exit(7)
"""


@pytest.mark.parametrize(("program", "code"), [("", 0), ("/nowhere", 7)])
def test_a_keeper_outlives_the_alarm_of_the_handler(program: str, code: int) -> None:
    """If the keeper's program cannot start, the child itself waits for the processes."""
    done = subprocess.run([sys.executable, "-c", KEEPER, program], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"printed\n", b"")
