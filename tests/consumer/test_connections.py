"""A consumer holds one connection to its database, and one more for each run that uses the database."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from scheduling.models import SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, marks, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SLOTS = 3


def held() -> int:
    """Count the connections of the processes that the test has started."""
    if connection.vendor == "sqlite":
        return sum(1 for pid in _processes() if _has_open(pid, str(connection.settings_dict["NAME"])))
    statement = (
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        if connection.vendor == "postgresql"
        else "SELECT COUNT(*) FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


def _processes() -> Iterator[int]:
    yield from (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())


def _has_open(pid: int, path: str) -> bool:
    try:
        return any(link.is_symlink() and os.readlink(link) == path for link in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it has ended, or belongs to another user
        return False


def test_a_child_that_waits_holds_no_connection(commands: Commands, tmp_path: Path) -> None:
    before = held()
    worker = commands.start("run_worker", "--concurrency", str(SLOTS), CONN_MAX_AGE="600")
    commands.ready(worker)
    wait_for(lambda: held() == before + 1, "an idle consumer holds one connection")
    schedule = SchedulerFactory(rare=True, handler="tests.ask", params={"directory": str(tmp_path), "seconds": 4})
    runs = ManualExecutionFactory.bulk(SLOTS, scheduler=schedule)
    wait_for(lambda: all(marks(tmp_path, run.pk) for run in runs), "all runs have asked the database")
    assert held() == before + 1 + SLOTS
    ended = SchedulerExecution.objects.filter(pk__in=[run.pk for run in runs], state="succeeded")
    wait_for(lambda: ended.count() == SLOTS, "all runs have ended")
    wait_for(lambda: held() == before + 1, "the children have closed their connections", seconds=15)
    assert commands.stop(worker, signal.SIGTERM) == 0
    wait_for(lambda: held() == before, "the consumer has closed its connection")


def test_the_next_run_of_a_backlog_uses_the_same_connection(commands: Commands, tmp_path: Path) -> None:
    """To connect for each run would take longer than many runs."""
    schedule = SchedulerFactory(rare=True, handler="tests.session")
    runs = ManualExecutionFactory.bulk(6, scheduler=schedule)
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", str(len(runs)), CONN_MAX_AGE="600")
    assert code == 0, log
    sessions = {line for line in log.splitlines() if "session " in line}
    assert len({line.rpartition("session ")[2] for line in sessions}) == 1, sessions
