"""The tests start `run_worker`. The command records the outcome of each run and then starts the next execution."""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.execution.cancel import cancel
from scheduling.models import Attempt, Output, Process, Scheduler, SchedulerExecution
from tests.apps.sample.returns import RETURNS
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def state(execution: SchedulerExecution) -> str:
    return str(SchedulerExecution.objects.values_list("state", flat=True).get(pk=execution.pk))


def output(execution: SchedulerExecution) -> str:
    return "".join(Output.objects.filter(execution=execution).values_list("text", flat=True))


def one(handler: str, **columns: object) -> SchedulerExecution:
    execution = ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, max_retries=0, **columns))
    return execution


ENDS = {
    # handler: (state, outcome, exit code, signal, words of the error message)
    "tests.noop": ("succeeded", "succeeded", 0, None, ""),
    "tests.noop_fresh": ("succeeded", "succeeded", 0, None, ""),
    "tests.fail": ("failed", "failed", 1, None, "cannot reach the service"),
    "tests.never_again": ("failed", "failed", 1, None, "the account is closed"),
    "tests.exit": ("failed", "failed", 3, None, "exited with 3"),
    "tests.vanish": ("failed", "crashed", 0, None, "exited with code 0 before the handler returned"),
    "tests.die": ("failed", "crashed", None, 9, "signal 9"),
    "tests.hang": ("failed", "timed_out", None, 9, "time limit of 1 s"),
    "tests.fork": ("succeeded", "succeeded", 0, None, ""),
    "tests.hostile": ("failed", "failed", 1, None, "<b>bold</b>"),
    "tests.flood": ("succeeded", "succeeded", 0, None, ""),
}


def test_every_outcome_is_recorded_and_the_next_execution_runs(commands: Commands, tmp_path: Path) -> None:
    executions = {name: one(name, params={"directory": str(tmp_path)} if name == "tests.fork" else {}) for name in ENDS}
    last = one("tests.mark", params={"directory": str(tmp_path)})
    worker = commands.start("run_worker", "--concurrency", "2", "--max-runs", str(len(ENDS) + 1))
    assert worker.wait(90) == 0, commands.log(worker)
    for name, (expected, outcome, code, number, words) in ENDS.items():
        execution = executions[name]
        execution.refresh_from_db()
        attempt = Attempt.objects.get(execution=execution)
        assert (execution.state, attempt.outcome, attempt.exit_code, attempt.signal) == (
            expected,
            outcome,
            code,
            number,
        ), name
        assert words in attempt.error_message, name
        assert attempt.pid, name
    assert state(last) == "succeeded"
    trace = Attempt.objects.get(execution=executions["tests.fail"]).traceback
    assert "ConnectionError: no route" in trace  # the traceback contains the cause of the error
    assert "scheduling/consumer/child.py" not in trace
    text = output(executions["tests.flood"])
    assert "first line" in text
    assert "last line" in text
    assert "left out" in text
    assert len(text) < 2_000_000
    assert "<script>alert(1)</script>" in output(executions["tests.hostile"])


def test_a_result_or_error_that_cannot_be_sent_does_not_change_the_outcome(commands: Commands) -> None:
    executions = {name: one("tests.return", params={"name": name}) for name in RETURNS}
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", str(len(executions)))
    assert code == 0, log
    outcomes = {
        name: Attempt.objects.values_list("outcome", "error_message").get(execution=execution)
        for name, execution in executions.items()
    }
    errors = {
        "an exit code that exits when shown": ("failed", "The handler exited with a _ExitsWhenShown."),
        "an error that exits when shown": ("failed", "(the error could not be shown)"),
    }
    assert outcomes == {name: errors.get(name, ("succeeded", "")) for name in RETURNS}


def test_output_of_prints_logs_and_grandchildren(commands: Commands) -> None:
    execution = one("tests.talk")
    code, log = commands.run("run_worker", "--max-runs", "1")
    assert code == 0, log
    text = output(execution)
    for line in (
        "OUT plain print",
        "OUT to stderr",
        "INFO logged info",
        "WARN logged warning",
        "SUCCESS logged success",
        "OUT from a grandchild",
    ):
        assert f" {line}\n" in text
    assert f"[Worker:tests.talk:{execution.pk}] plain print" in log


def test_a_retry_comes_after_its_delay(commands: Commands, tmp_path: Path) -> None:
    execution = ManualExecutionFactory(
        scheduler__handler="tests.fail_once", scheduler__params={"directory": str(tmp_path)}
    )
    commands.run("run_worker", "--max-runs", "2")
    execution.refresh_from_db()
    assert (execution.state, execution.attempt, execution.error_message) == ("succeeded", 2, "")
    first, second = Attempt.objects.filter(execution=execution)
    assert first.outcome == "failed"
    assert first.retry_at is not None
    assert second.started_at >= first.retry_at
    assert len(marks(tmp_path, execution.pk)) == 2


@pytest.mark.any_database
def test_a_program_that_a_handler_left_running_is_ended(commands: Commands, tmp_path: Path) -> None:
    execution = one("tests.fork", params={"directory": str(tmp_path)})
    commands.run("run_worker", "--max-runs", "1")
    (line,) = marks(tmp_path, execution.pk)
    group = int(line.split()[2])  # the child's process id is also the id of its process group

    def group_is_gone() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    wait_for(group_is_gone, "the process the handler left behind is ended")


def daemon_of(directory: Path, execution: SchedulerExecution) -> int:
    return int((directory / f"daemon-{execution.pk}.txt").read_text().split()[0])


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.any_database
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_a_daemon_ends_with_its_run_and_that_of_a_neighbour_goes_on(commands: Commands, tmp_path: Path) -> None:
    neighbour = one("tests.daemon", params={"directory": str(tmp_path), "seconds": 600})
    worker = commands.start("run_worker", "--concurrency", "2")
    wait_for(lambda: marks(tmp_path, neighbour.pk), "the neighbour runs")
    executions = [one("tests.daemon", params={"directory": str(tmp_path)}) for _ in range(3)]
    wait_for(lambda: {state(execution) for execution in executions} == {"succeeded"}, "the others are over")
    daemons = [daemon_of(tmp_path, execution) for execution in executions]
    wait_for(lambda: all(map(is_gone, daemons)), "their daemons are ended")
    assert state(neighbour) == "running"
    assert not is_gone(daemon_of(tmp_path, neighbour))
    assert cancel(neighbour.pk, "ann") == "asked"
    wait_for(lambda: is_gone(daemon_of(tmp_path, neighbour)), "its daemon is ended, too")
    assert commands.stop(worker) == 0


@pytest.mark.any_database
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_ends_with_its_consumer(commands: Commands, tmp_path: Path, number: int) -> None:
    execution = one("tests.daemon", params={"directory": str(tmp_path), "seconds": 600})
    worker = commands.start("run_worker", "--concurrency", "1")
    wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    if number == signal.SIGTERM:
        worker.send_signal(number)
        wait_for(lambda: "Asked to stop" in commands.log(worker), "it drains")
    commands.stop(worker, number)
    wait_for(lambda: is_gone(daemon_of(tmp_path, execution)), "the daemon is ended")


def test_output_and_progress_are_stored_during_a_run(commands: Commands, tmp_path: Path) -> None:
    execution = one("tests.chatter", params={"directory": str(tmp_path), "seconds": 600})
    commands.start("run_worker")
    wait_for(lambda: "tick 1" in output(execution), "its first lines show")
    row = wait_for(lambda: SchedulerExecution.objects.filter(pk=execution.pk).exclude(progress="").first(), "progress")
    assert (row.state, row.pid) == ("running", int(marks(tmp_path, execution.pk)[0].split()[2]))
    wait_for(lambda: "tick 3" in output(execution), "the following lines follow")
    assert output(execution).count("tick 1\n") == 1


def test_shutdown_lets_runs_finish_within_the_grace_time(commands: Commands, tmp_path: Path) -> None:
    execution = one("tests.mark", params={"directory": str(tmp_path), "seconds": 2})
    waiting = one("tests.noop")
    worker = commands.start("run_worker")
    wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    assert commands.stop(worker) == 0
    assert (state(execution), state(waiting)) == ("succeeded", "queued")
    assert Process.objects.get(kind="consumer").stopped_at is not None


def test_a_drain_waits_without_a_limit_until_a_stop_signal_comes(commands: Commands, tmp_path: Path) -> None:
    short = one("tests.mark", params={"directory": str(tmp_path), "seconds": 4})
    worker = commands.start("run_worker", CRON_GRACE_SECONDS="0")  # after SIGTERM, the run would be ended at once
    wait_for(lambda: marks(tmp_path, short.pk), "it runs")
    worker.send_signal(signal.SIGUSR1)
    wait_for(lambda: "may take as long as needed" in commands.log(worker), "it drains")
    waiting = one("tests.noop")
    assert worker.wait(60) == 0, commands.log(worker)
    assert (state(short), state(waiting)) == ("succeeded", "queued")
    long = one("tests.mark", params={"directory": str(tmp_path), "seconds": 600})
    worker = commands.start("run_worker", CRON_GRACE_SECONDS="0")
    wait_for(lambda: marks(tmp_path, long.pk), "it runs")
    worker.send_signal(signal.SIGUSR1)
    wait_for(lambda: "may take as long as needed" in commands.log(worker), "it drains")
    assert commands.stop(worker) == 0  # one SIGTERM
    assert state(long) == "queued"


def test_a_second_signal_interrupts_the_run_and_the_attempt_does_not_count(commands: Commands, tmp_path: Path) -> None:
    execution = one("tests.mark", params={"directory": str(tmp_path), "seconds": 600})
    worker = commands.start("run_worker")
    wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    worker.send_signal(signal.SIGTERM)
    wait_for(lambda: "Asked to stop" in commands.log(worker), "it drains")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    execution.refresh_from_db()
    assert (execution.state, execution.attempt, execution.retry_base) == ("queued", 1, 1)
    assert Attempt.objects.get().outcome == "interrupted"


@pytest.mark.parametrize("end", ["shutdown", "killed child", "killed child, retried by its schedule"])
def test_a_handler_that_refuses_further_attempts_never_works_twice(
    commands: Commands, tmp_path: Path, end: str
) -> None:
    execution = one("tests.mark_once", params={"directory": str(tmp_path), "seconds": 600})
    if end.endswith("schedule"):  # operators may give a schedule retries although its handler has none
        Scheduler.objects.update(max_retries=2, retry_delay_ms=1000)
    worker = commands.start("run_worker")
    (line,) = wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    if end == "shutdown":
        worker.send_signal(signal.SIGTERM)
        wait_for(lambda: "Asked to stop" in commands.log(worker), "it drains")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
        commands.start("run_worker")
    else:
        os.kill(int(line.split()[2]), signal.SIGKILL)
    wait_for(lambda: state(execution) == "failed", "it is in the failed inbox")
    assert marks(tmp_path, execution.pk) == [line]
    attempts = list(Attempt.objects.order_by("number").values_list("outcome", "error_class"))
    refused = ("failed", "scheduling.core.outcome.NonRetryableError")
    expected = {
        "shutdown": [("interrupted", "Interrupted"), refused],
        "killed child": [("crashed", "Crashed")],
        "killed child, retried by its schedule": [("crashed", "Crashed"), refused],
    }
    assert attempts == expected[end]


def test_cancel_ends_a_running_run(commands: Commands, tmp_path: Path) -> None:
    execution = one("tests.mark", params={"directory": str(tmp_path), "seconds": 600})
    commands.start("run_worker")
    wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    assert cancel(execution.pk, "ann") == "asked"
    wait_for(lambda: state(execution) == "cancelled", "it is cancelled")
    assert Attempt.objects.get().outcome == "cancelled"


@pytest.mark.any_database
def test_the_children_of_a_killed_consumer_end(commands: Commands, tmp_path: Path) -> None:
    execution = one("tests.mark", params={"directory": str(tmp_path), "seconds": 600})
    worker = commands.start("run_worker")
    (line,) = wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    pid = int(line.split()[2])
    commands.stop(worker, signal.SIGKILL)

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    wait_for(gone, "the child is gone")
    assert state(execution) == "running"  # the row stays running until the lease ends


def test_a_paused_consumer_is_fenced_off(commands: Commands, tmp_path: Path) -> None:
    """SIGSTOP pauses the first consumer. Its lease ends, and a second consumer runs the execution.

    When the first consumer continues, it must not record a result.
    """
    execution = one("tests.mark", params={"directory": str(tmp_path), "seconds": 4})
    execution.scheduler.max_retries = 1
    execution.scheduler.save()
    first = commands.start("run_worker", CRON_LEASE_SECONDS="3")
    wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    with transaction.atomic():  # SQLite: if it were stopped while it writes, no process could write any more
        execution.scheduler.save()
        first.send_signal(signal.SIGSTOP)
    commands.start("run_scheduler")
    commands.start("run_worker", CRON_LEASE_SECONDS="3")
    wait_for(
        lambda: len([m for m in marks(tmp_path, execution.pk) if m.startswith("start")]) == 2,
        "the second consumer starts it",
    )
    wait_for(lambda: state(execution) == "succeeded", "the second consumer is done")
    first.send_signal(signal.SIGCONT)
    wait_for(
        lambda: "dropped" in commands.log(first) or "Lost its lease" in commands.log(first),
        "the first consumer sees it",
    )
    attempts = list(Attempt.objects.order_by("number").values_list("number", "outcome"))
    assert attempts == [(1, "crashed"), (2, "succeeded")]


@pytest.mark.any_database
def test_a_consumer_goes_on_after_its_forkserver_was_killed(commands: Commands, tmp_path: Path) -> None:
    execution = one("tests.mark", params={"directory": str(tmp_path), "seconds": 600})
    worker = commands.start("run_worker")
    (line,) = wait_for(lambda: marks(tmp_path, execution.pk), "it runs")
    with open(f"/proc/{line.split()[2]}/stat") as file:
        forkserver = int(file.read().rsplit(")", 1)[1].split()[1])
    os.kill(forkserver, signal.SIGKILL)
    wait_for(lambda: state(execution) == "failed", "the run has an end")
    following = one("tests.noop")
    wait_for(lambda: state(following) == "succeeded", "the next goes on")
    assert Attempt.objects.get(execution=execution).outcome == "crashed"
    assert worker.poll() is None


def test_a_handler_that_is_not_registered_fails_with_a_message(commands: Commands) -> None:
    execution = one("tests.noop")
    SchedulerExecution.objects.update(deferred_at=clock.now() - timedelta(minutes=2))
    commands.run("run_worker", "--max-runs", "1", EXTRA_APPS="")
    attempt = Attempt.objects.get(execution=execution)
    assert attempt.outcome == "failed"
    assert "No worker is registered as 'tests.noop'" in attempt.error_message


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"CRON_MAX_RETRIES": "20"}, "CRON_MAX_RETRIES is 20; it must be from 0 to 19"),
        ({"CRON_RETRY_DELAY_MS": "soon"}, "CRON_RETRY_DELAY_MS"),
        ({"CRON_TIMEZONE": "Mars/Base"}, "CRON_TIMEZONE"),
        ({"BROKER_URL": "redis://user:secret@host"}, "BROKER_URL must begin with"),
        ({"LOG_LEVEL": "LOUD"}, "LOG_LEVEL"),
    ],
)
@pytest.mark.parametrize("command", ["run_worker", "run_scheduler", "cleanup_executions", "check"])
def test_an_unusable_setting_stops_every_command_with_a_sentence(
    commands: Commands, command: str, environment: dict[str, str], words: str
) -> None:
    code, log = commands.run(command, **environment)
    assert code != 0
    assert words in log
    assert "Traceback" not in log
    assert "secret" not in log


@pytest.mark.any_database
def test_bad_arguments_are_refused(commands: Commands) -> None:
    code, log = commands.run("run_worker", "--concurrency", "0")
    assert (code, "--concurrency must be from 1" in log) == (1, True)


def test_times_of_rows_do_not_depend_on_the_time_zone(commands: Commands) -> None:
    execution = one("tests.noop")
    before = clock.now()
    commands.run("run_worker", "--max-runs", "1", TIME_ZONE="Asia/Tokyo")
    attempt = Attempt.objects.get(execution=execution)
    assert before <= attempt.started_at <= clock.now()
