"""Checks a SQLite database: its file, journal mode, transaction mode and file system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.monitoring.findings.finding import Finding, fail, ok
from scheduling.processes.sqlite_place import NETWORK, file_system, in_memory


def missing(connection: BaseDatabaseWrapper) -> Finding | None:
    """A finding of level FAIL if the database is in memory or its file is missing, otherwise None.

    Call this before connecting, because connecting would create an empty file.
    """
    name = str(connection.settings_dict["NAME"])
    if in_memory(name):
        return fail("reachable", "The database is in memory: each process would have its own.", "Name a file.")
    if not Path(name).exists():
        return fail("reachable", f"There is no database file {name}.", "Run: manage.py migrate")
    return None


def ask(connection: BaseDatabaseWrapper, query: str) -> Any:
    """Run the query and return the last column of its first row."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[-1]


def examine(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Check the journal mode, the transaction mode, the write permission and the file system."""
    file = Path(str(connection.settings_dict["NAME"]))
    journal = ask(connection, "PRAGMA journal_mode").upper()
    if journal == "WAL":
        yield ok("journal", "WAL: readers and the writer work side by side.")
    else:
        seen = f"{journal}: a reader stops every writer, and runs fail with 'database is locked'."
        yield fail("journal", seen, 'OPTIONS: {"init_command": "PRAGMA journal_mode=WAL;"}')
    mode = getattr(connection, "transaction_mode", None)
    if mode == "IMMEDIATE":
        yield ok("transactions", "IMMEDIATE: writers take turns.")
    else:
        seen = f"{mode or 'DEFERRED'}: two writers can meet halfway, and one fails with 'database is locked'."
        yield fail("transactions", seen, 'OPTIONS: {"transaction_mode": "IMMEDIATE", "timeout": 20}')
    if os.access(file, os.W_OK) and os.access(file.parent, os.W_OK):
        yield ok("writable", "Yes.")
    else:
        # The folder must be writable, because SQLite also writes -wal and -shm files in the folder.
        yield fail("writable", f"This user may not write {file} and its folder.", "Change their owner or mode.")
    kind = file_system(file)
    if kind in NETWORK:
        seen = f"{file} lies on {kind}: locks do not hold there, and the file can be damaged."
        advice = "Put it on a local disk, or use MySQL, MariaDB or PostgreSQL for more than one host."
        yield fail("file system", seen, advice)
    elif kind:
        yield ok("file system", f"{kind}, on this host. Use a database server for more than one host.")
