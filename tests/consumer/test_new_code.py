"""A handler is mended while real processes run. The pages tell of the old code, and `up` runs the new code."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.utils import timezone as clock

from scheduling.admin.executions.surroundings import surroundings_of
from scheduling.admin.executions.why import old_code
from scheduling.handlers.registry import NoParams, _handlers, worker
from scheduling.models import Process, SchedulerExecution
from scheduling.monitoring.doctor.liveness import of_process
from scheduling.monitoring.findings import processes
from scheduling.monitoring.findings.finding import Named
from scheduling.monitoring.findings.present import Present
from scheduling.processes.loaded_code import EXIT_NEW_CODE
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.management.running import ROOT, Running
from tests.support import Commands, wait_for

BROKEN = """
from scheduling.registry import worker

@worker("mended.job", title="Mended job")
def job(params, run):
    raise RuntimeError("no token file")
"""
MENDED = """
from scheduling.registry import worker

@worker("mended.job", title="Mended job")
def job(params, run):
    print("mended code")
"""
ASK = """
import django; django.setup()
from scheduling.execution.run_now import run_now
from scheduling.broker.database import DatabaseBroker
from scheduling.models import Scheduler, Worker
row = Worker.objects.get(name="mended.job")
found, _ = Scheduler.objects.get_or_create(description="Mended", schedule="0 0 1 1 *", worker=row, max_retries=0)
print(run_now(found, DatabaseBroker(), "ada").pk)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The app `mended` with a broken handler."""
    app = tmp_path / "project" / "mended"
    app.mkdir(parents=True)
    (app / "__init__.py").write_text("")
    write(app.parent, BROKEN, -60)
    return app.parent


def write(project: Path, text: str, seconds: float = 0.0) -> None:
    """Write the handler. The file's mtime differs from the former one, however coarse the file system's times are."""
    path = project / "mended" / "workers.py"
    path.write_text(text)
    os.utime(path, (time.time() + seconds, time.time() + seconds))


@pytest.fixture
def registered() -> Iterator[None]:
    """Register the handler in this process too, as a web process would."""
    worker("mended.job", params=NoParams)(lambda params, run: None)
    yield
    del _handlers["worker", "mended.job"]


def run_once(**columns: object) -> SchedulerExecution:
    found: SchedulerExecution = ManualExecutionFactory(
        scheduler=SchedulerFactory(rare=True, handler="mended.job", max_retries=0, **columns)
    )
    return found


def settled(execution: SchedulerExecution) -> SchedulerExecution | None:
    execution.refresh_from_db()
    return execution if execution.state in ("succeeded", "failed") else None


@pytest.mark.any_database
@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_consumer_tells_that_its_code_is_old(commands: Commands, project: Path, registered: None) -> None:
    environment = {"EXTRA_APPS": "mended", "PYTHONPATH": f"{project}:{ROOT}", "CRON_LEASE_SECONDS": "3"}
    first = run_once()
    consumer = commands.start("run_worker", **environment)
    wait_for(lambda: settled(first), "the broken handler has failed")
    assert not list(_old_code())
    assert Process.objects.get().code_at is not None
    write(project, MENDED)
    wait_for(lambda: Process.objects.get().code_changed_at is not None, "the consumer has seen the change")
    now = clock.now()
    assert ["runs the code of" in row.about for row in _old_code()] == [True]
    second = run_once()
    wait_for(lambda: settled(second), "the old code has failed again")
    assert second.state == "failed"
    said = " ".join(old_code(second, clock.now(), surroundings_of(second, clock.now())))
    assert "Attempt 1 ran old code, so the traceback may show lines that did not run." in said
    assert "restart it" in said
    said = " ".join(old_code(first, clock.now(), surroundings_of(first, clock.now())))
    assert "ran old code" not in said
    assert "restart it" in said
    probe = of_process("consumer", now, seconds=60)
    assert probe.well
    assert "restart it" in probe.text
    commands.stop(consumer)
    assert not list(_old_code())


def _old_code() -> list[Named]:
    return [row for found in processes.examine(Present(clock.now())) if found.check == "old code" for row in found.rows]


@pytest.mark.any_database
@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["run_worker", "run_scheduler"])
def test_a_process_with_the_option_ends_for_new_code(commands: Commands, project: Path, command: str) -> None:
    environment = {"EXTRA_APPS": "mended", "PYTHONPATH": f"{project}:{ROOT}"}
    process = commands.start(command, "--restart-on-change", **environment)
    wait_for(lambda: Process.objects.filter(code_at__isnull=False).exists(), "the process has sent a heartbeat")
    write(project, "def job(:\n", 1)
    wait_for(lambda: "cannot be loaded" in commands.log(process), "the mistake is told")
    assert process.poll() is None
    write(project, MENDED, 2)
    assert process.wait(60) == EXIT_NEW_CODE, commands.log(process)
    row = Process.objects.get()
    assert row.stopped_at is not None
    assert row.code_changed_at is not None


@pytest.mark.any_database
@pytest.mark.processes
def test_up_runs_the_new_code(tmp_path: Path, project: Path, free_port: int) -> None:
    database = tmp_path / "data" / "db.sqlite3"
    environment = {
        **{name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}},
        "DATA_DIR": str(tmp_path / "data"),
        "DJANGO_SETTINGS_MODULE": "cronsite.settings",
        "ENV_FILE": "/nonexistent",
        "SECRET_KEY": "tests",
        "DATABASE_URL": f"sqlite:///{database}",
        "PYTHONPATH": f"{project}:{ROOT}",
        "EXTRA_APPS": "mended",
        "CRON_GRACE_SECONDS": "1",
    }
    argv = [sys.executable, str(ROOT / "manage.py"), "up", "--no-demo", "--port", str(free_port)]

    def ask() -> int:
        done = subprocess.run(
            [sys.executable, "-c", ASK], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        return int(done.stdout)

    def ended(execution: int) -> str:
        with closing(sqlite3.connect(database)) as connection:
            query = "select state from scheduling_schedulerexecution where id = ?"
            (state,) = connection.execute(query, [execution]).fetchone()
        return str(state) if state in ("succeeded", "failed") else ""

    with Running(argv, environment) as running:
        running.wait_for("Consumer ready")
        running.wait_for("Ctrl-C stops everything")
        first = ask()
        assert wait_for(lambda: ended(first), "the broken handler has ended") == "failed"
        write(project, MENDED)
        for name in ("web", "producer", "consumer"):
            running.wait_for(f"The code of {name} has changed; starting it again with the new code")
        second = ask()
        assert wait_for(lambda: ended(second), "the mended handler has ended") == "succeeded"
        running.wait_for("mended code")  # the log may come later than the row
        running.wait_for("Consumer ready", 2)
