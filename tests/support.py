"""What tests share: rows, waiting for a condition, and the real commands as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from django.db import connection
from django.utils import timezone as clock

from scheduling.models import Scheduler, SchedulerExecution, Worker

ROOT = Path(__file__).resolve().parent.parent
T = TypeVar("T")

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


def wait_for(condition: Callable[[], T], what: str, seconds: float = 30.0) -> T:
    """The condition's first true value; fails with `what` when the deadline passes."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def scheduler(handler: str = "tests.noop", **columns: Any) -> Scheduler:
    """A saved schedule of a registered worker; by default it is not due soon."""
    if "schedule" not in columns and "date_time" not in columns:
        columns["schedule"] = "0 0 1 1 *"
    return Scheduler.objects.create(worker=Worker.objects.get(name=handler), **columns)


def due(row: Scheduler, instant: datetime) -> Scheduler:
    """Make a schedule due at an instant, as if it had been planned for it long before."""
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=instant)
    row.refresh_from_db()
    return row


def queued(row: Scheduler, count: int = 1, **columns: Any) -> list[SchedulerExecution]:
    """Executions that wait in the embedded queue."""
    now = clock.now()
    values: dict[str, Any] = {
        "scheduler": row,
        "scheduled_at": now,
        "trigger": "manual",
        "type": "worker",
        "target_id": row.worker_id,
        "target_name": row.worker.name if row.worker else "",
        "params": row.params,
        "executed_at": now,
        "container_id": "test",
        "state": "queued",
        "wake_at": now,
        "published_at": now,
        **columns,
    }
    rows = SchedulerExecution.objects.bulk_create(
        [SchedulerExecution(execution_key=f"manual-{uuid.uuid4()}", **values) for _ in range(count)]
    )
    if rows and rows[0].pk is None:  # MySQL returns no keys for a bulk insert
        keys = [each.execution_key for each in rows]
        found = {each.execution_key: each for each in SchedulerExecution.objects.filter(execution_key__in=keys)}
        return [found[key] for key in keys]
    return rows


def database_url() -> str:
    """The test database as a URL, for processes of their own."""
    config = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{config['NAME']}"
    scheme = {"mysql": "mysql", "postgresql": "postgres"}[connection.vendor]
    password = f":{quote(config['PASSWORD'], safe='')}" if config["PASSWORD"] else ""
    port = f":{config['PORT']}" if config["PORT"] else ""
    return f"{scheme}://{config['USER']}{password}@{config['HOST'] or 'localhost'}{port}/{config['NAME']}"


class Commands:
    """Starts management commands as processes on the test database, and always ends them."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.directory = directory
        self.started: list[subprocess.Popen[bytes]] = []
        inherited = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
        self.environment = {
            **inherited,
            "DATABASE_URL": database_url(),
            "DATA_DIR": str(directory),
            "DJANGO_SETTINGS_MODULE": "cronsite.settings",
            "ENV_FILE": str(directory / "no.env"),
            "EXTRA_APPS": "tests.handlers",
            "SECRET_KEY": "tests",
            "PYTHONUNBUFFERED": "1",
            **environment,
        }

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start `manage.py <arguments>`; its output goes to a file, see `log`."""
        number = len(self.started)
        with (self.directory / f"{number}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "manage.py", *arguments],
                cwd=ROOT,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def log(self, process: subprocess.Popen[bytes]) -> str:
        """What a process has printed so far."""
        return (self.directory / f"{self.started.index(process)}.log").read_text(errors="replace")

    def ready(self, *processes: subprocess.Popen[bytes]) -> None:
        """Wait until each says that it is ready."""
        for process in processes:
            wait_for(lambda process=process: " ready" in self.log(process) or process.poll() is not None, "ready")
            assert process.poll() is None, self.log(process)

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Run a command to its end: exit code and output."""
        process = self.start(*arguments, **environment)
        return process.wait(60), self.log(process)

    def stop(self, process: subprocess.Popen[bytes], number: int = signal.SIGTERM, seconds: float = 60.0) -> int:
        """Signal one process and wait for its end."""
        process.send_signal(number)
        return process.wait(seconds)

    def end(self) -> None:
        """Kill what is left, with its group."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()


def marks(directory: Path, execution_id: int) -> list[str]:
    """What the handlers of one execution wrote outside the database: `start 1 <pid>`, `end 1 <pid>`."""
    path = directory / f"{execution_id}.txt"
    return path.read_text().splitlines() if path.exists() else []
