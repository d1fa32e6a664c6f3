"""The log of a consumer has the lines that the original contract prints.

Each expected line is the original's own. Only ids, times, names and error texts are put in. Our lines may have more
context, and a failed attempt that is retried is logged as WARN (docs/original-contract.md says why).
"""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reports.models import Report
from scheduling.broker import get_broker
from scheduling.execution.run_now import run_now
from scheduling.models import Scheduler
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.any_database, pytest.mark.django_db(transaction=True)]

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Line(NamedTuple):
    """A log line without its time."""

    level: str
    context: dict[str, str]
    text: str


def parsed(line: str) -> Line | None:
    """Return the parts of a line; None if it does not begin with a time and a level."""
    found = re.fullmatch(rf"{TIME} \[([A-Z]+)\] (?:\[(\w+=[^\]]*)\] )?(.*)", line)
    if found is None:
        return None
    level, context, text = found.groups()
    return Line(level, dict(part.split("=", 1) for part in context.split(", ")) if context else {}, text)


def find(log: str, line: str, **facts: object) -> int:
    """Return the number of the log line that says what the original's line says, or fail.

    Args:
        line: the original's line. A name such as `<id>` stands for one of the facts, and `<any>` for any text.
    """
    for name, value in facts.items():
        line = line.replace(f"<{name}>", str(value))
    wanted = parsed(line)
    assert wanted is not None, line
    for number, written in enumerate(log.splitlines()):
        own = parsed(written)
        if (
            own is not None
            and own.level == wanted.level
            and all(_fits(own.context.get(name, ""), value) for name, value in wanted.context.items())
            and _fits(own.text, wanted.text)
        ):
            return number
    raise AssertionError(f"{wanted}\n\n{log}")


def _fits(text: str, wanted: str) -> bool:
    """Whether the text begins with the wanted text. `<any>` fits any text that is not empty."""
    return re.match(re.escape(wanted).replace("<any>", ".+"), text) is not None


AT = "2025-12-12T12:00:00.000Z"


def test_the_lines_of_a_report_that_is_retried_and_fails(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "down").touch()
    report = Report.objects.get(controller="tests.tokens")
    Report.objects.filter(pk=report.pk).update(params={"directory": str(tmp_path)})
    schedule = Scheduler.objects.create(report=report, schedule="0 0 1 1 *", max_retries=1, retry_delay_ms=1000)
    execution = run_now(schedule, get_broker("database://"))
    worker = commands.start("run_worker", LOG_LEVEL="DEBUG")
    wait_for(lambda: "Failed task details" in commands.log(worker), "the failure is logged")
    assert commands.stop(worker) == 0
    log = commands.log(worker)
    lines = log.splitlines()
    own = {"id": report.pk, "sid": schedule.pk, "run": execution.pk}
    task = "type=report, id=<id>, scheduler_id=<sid>"

    find(log, f"{AT} [INFO] [{task}] Processing task", **own)
    said = lines[find(log, f"{AT} [DEBUG] Task parameters: {{")]
    assert json.loads(said.partition("Task parameters: ")[2]) == {"directory": str(tmp_path)}
    find(log, f"{AT} [INFO] [pid=<any>] [Report:tests.tokens:<run>] Process spawned (instant mode)", **own)
    for level in ("WARN", "ERROR"):  # the first attempt is retried, the second one is the last
        failed = find(log, f"{AT} [{level}] [{task}, duration=<any>ms, exit_code=1] Task execution failed", **own)
        assert parsed(lines[failed + 1]) == (level, {}, "Stack trace:")
        assert lines[failed + 2].strip() == "Traceback (most recent call last):"
        trace = [line for line in lines[failed + 2 :] if line.startswith("    ")]
        assert "    ConnectionError: the token service does not answer" in trace
    find(log, f"{AT} [WARN] [{task}] Scheduling retry 1/1 in 1000ms", **own)
    find(log, f"{AT} [INFO] [{task}] Retry attempt: 1/1", **own)
    find(log, f"{AT} [INFO] [pid=<any>] [Report:tests.tokens:<run>] Process exited (code: 1)", **own)
    number = find(log, f"{AT} [ERROR] [{task}, retry_count=1, failed_at=<any>] PERMANENTLY FAILED TASK", **own)
    context = (parsed(lines[number]) or Line("", {}, "")).context
    details = json.loads(lines[find(log, f"{AT} [DEBUG] Failed task details: {{")].partition("details: ")[2])
    assert details["failed_at"] == context["failed_at"]
    expected = {
        "type": "report",
        "id": report.pk,
        "scheduler_id": schedule.pk,
        "retry_count": 1,
        "params_scheduler": {},
    }
    assert {name: details[name] for name in expected} == expected
    assert details["failed_reason"].endswith("the token service does not answer")
    find(log, f"{AT} [WARN] SIGTERM received, shutting down gracefully...")
    find(log, f"{AT} [INFO] Shutdown complete")
    assert "SELECT" not in log  # the statements of the polls would hide all other lines


def test_the_lines_of_a_report_that_succeeds(commands: Commands, tmp_path: Path) -> None:
    report = Report.objects.get(controller="tests.tokens")
    schedule = Scheduler.objects.create(report=report, schedule="0 0 1 1 *", params={"directory": str(tmp_path)})
    execution = run_now(schedule, get_broker("database://"))
    worker = commands.start("run_worker")
    wait_for(lambda: "Process exited" in commands.log(worker), "its process has ended")
    log = commands.log(worker)
    for text in ("spawned (instant mode)", "finished successfully", "exited successfully (code: 0)"):
        find(log, f"{AT} [INFO] [pid=<any>] [Report:tests.tokens:<run>] Process {text}", run=execution.pk)
    task = "type=report, id=<id>, scheduler_id=<sid>, duration=<any>ms, exit_code=0"
    find(log, f"{AT} [SUCCESS] [{task}] Task completed", id=report.pk, sid=schedule.pk)


def test_json_lines_have_the_stack_trace_and_the_duration(commands: Commands) -> None:
    ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler="tests.fail", max_retries=0))
    worker = commands.start("run_worker", "--max-runs", "1", LOG_FORMAT="json")
    assert worker.wait(90) == 0, commands.log(worker)
    lines: list[dict[str, Any]] = [json.loads(line) for line in commands.log(worker).splitlines() if line[:1] == "{"]
    (failed,) = [line for line in lines if line["message"].startswith("Task execution failed")]
    assert "ConnectionError: no route to 10.1.2.3" in failed["traceback"]
    assert re.fullmatch(r"\d+ms", failed["duration"])
    assert failed["exit_code"] == 1


def test_secrets_are_masked_in_the_log(commands: Commands) -> None:
    secret = {"token": "hunter2-and-more", "days": 3}
    schedule = SchedulerFactory(rare=True, handler="tests.keep", params=secret, max_retries=0)
    ManualExecutionFactory(scheduler=schedule, params=secret)
    worker = commands.start("run_worker", "--max-runs", "1", LOG_LEVEL="DEBUG")
    assert worker.wait(90) == 0, commands.log(worker)
    log = commands.log(worker)
    find(log, f'{AT} [DEBUG] Task parameters: {{"token": "••••••", "days": 3}}')
    assert '"params_scheduler": {"token": "••••••", "days": 3}' in log
    assert "hunter2" not in log


@pytest.mark.parametrize("command", ["run_worker", "run_scheduler"])
def test_the_stop_signal_is_logged_by_its_name(commands: Commands, command: str) -> None:
    process = commands.start(command)
    commands.ready(process)
    assert commands.stop(process, signal.SIGINT) == 0
    log = commands.log(process)
    stop = find(log, f"{AT} [WARN] SIGINT received, shutting down gracefully...")
    assert stop < find(log, f"{AT} [INFO] Shutdown complete")
