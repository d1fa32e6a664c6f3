"""Stop processes and let them go on, as a virtual machine does that is suspended."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from django.db import DatabaseError, connection, transaction

from scheduling.models import SchedulerExecution
from tests.support import wait_for


def send(pid: int, number: int) -> None:
    """Send a signal to a process, unless it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def state(pid: int) -> str:
    """The state of a process as the kernel shows it: `T` is stopped, `Z` has ended; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def halt(*pids: int) -> None:
    """Stop processes, and wait until they do nothing more. A process that is inside the kernel stops a little later."""
    for pid in pids:
        send(pid, signal.SIGSTOP)
    for pid in pids:
        wait_for(lambda pid=pid: state(pid) in ("", "T", "Z"), "the process is stopped")


def is_free(runs: Sequence[tuple[int, int]]) -> bool:
    """Whether another process can settle these attempts. A stopped process may hold a lock.

    Args:
        runs: the ids of the executions, each with the number of an attempt.
    """
    if connection.vendor == "sqlite":
        try:
            with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=1.0)) as other:
                other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True
    rows = SchedulerExecution.objects.filter(pk__in=[pk for pk, _ in runs])
    try:
        with transaction.atomic():
            return bool(rows.select_for_update(nowait=True).values_list("pk", flat=True))
    except DatabaseError:
        return False
