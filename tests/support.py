"""Helpers for all tests: `wait_for` waits for a condition, and `Commands` runs management commands as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from django.db import connection, connections
from hypothesis import settings

from scheduling.processes.server_clock import ServerClock

ROOT = Path(__file__).resolve().parent.parent
T = TypeVar("T")

NOON = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)

Clock = Callable[[datetime], datetime]
"""The fixture `at`: it sets the clock to an instant, and returns the instant."""


def examples(count: int) -> settings:
    """Return Hypothesis settings for `count` examples, or for an eighth of them if TEST_FAST is set."""
    return settings(max_examples=max(1, count // 8) if os.environ.get("TEST_FAST") else count)


def wait_for(condition: Callable[[], T], what: str, seconds: float = 90.0) -> T:
    """Return the condition's first true value. If the condition is not met in time, fail with the message `what`."""
    begin = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begin
        if waited > seconds:
            raise AssertionError(f"not within {seconds} s: {what}")
        # The processes that the test waits for need the processor.
        time.sleep(min(max(0.02, waited / 20), 0.08))


def at_once(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Run all jobs at the same time, each in a new thread. Return their results in the order of the jobs.

    If a job raises an error, this function raises the same error. Each thread closes its database connections.
    """
    barrier = threading.Barrier(len(jobs))

    def run(job: Callable[[], T]) -> T:
        try:
            barrier.wait(10)
            return job()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result(60) for future in [pool.submit(run, job) for job in jobs]]


def database_url() -> str:
    """Return the URL of the test database, for the processes that a test starts."""
    config = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{config['NAME']}"
    scheme = {"mysql": "mysql", "postgresql": "postgres"}[connection.vendor]
    password = f":{quote(config['PASSWORD'], safe='')}" if config["PASSWORD"] else ""
    port = f":{config['PORT']}" if config["PORT"] else ""
    return f"{scheme}://{config['USER']}{password}@{config['HOST'] or 'localhost'}{port}/{config['NAME']}"


class Commands:
    """Starts management commands as processes that use the test database. `end` kills the processes."""

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
            "EXTRA_APPS": "tests.apps.sample",
            "SECRET_KEY": "tests",
            "PYTHONUNBUFFERED": "1",
            **environment,
        }

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start `manage.py <arguments>`. Its output goes to a file, which `log` reads."""
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
        """Return the present output of a process."""
        return (self.directory / f"{self.started.index(process)}.log").read_text(errors="replace")

    def ready(self, *processes: subprocess.Popen[bytes]) -> None:
        """Wait until each process has printed that it is ready."""
        for process in processes:
            wait_for(lambda process=process: " ready" in self.log(process) or process.poll() is not None, "ready")
            assert process.poll() is None, self.log(process)

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Run a command to its end and return its exit code and output."""
        process = self.start(*arguments, **environment)
        return process.wait(120), self.log(process)

    def stop(self, process: subprocess.Popen[bytes], number: int = signal.SIGTERM, seconds: float = 120.0) -> int:
        """Send a signal to one process, wait until the process has ended, and return its exit code."""
        process.send_signal(number)
        return process.wait(seconds)

    def end(self) -> None:
        """Kill the processes that still run."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()


@contextmanager
def lax_sql() -> Iterator[None]:
    """Let MariaDB and MySQL accept invalid dates, as the SQL client of an operator may do. Other databases go on.

    Later tests use the same connection, so it gets its own mode back.
    """
    if connection.vendor != "mysql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION sql_mode = DEFAULT")


class StoppedClock(ServerClock):
    """A clock that the test sets. It does not take over the server's time."""

    def learn(self, answer: object) -> None:
        """Do nothing."""


def marks(directory: Path, execution_id: int) -> list[str]:
    """Return the lines that the handler of an execution has written with `mark`, such as `start 1 <pid>`."""
    path = directory / f"{execution_id}.txt"
    return path.read_text().splitlines() if path.exists() else []
