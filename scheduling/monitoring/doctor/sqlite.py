"""Checks a SQLite database: its file, journal mode, transaction mode and file system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.monitoring.findings.finding import Finding, fail, ok

NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "glusterfs", "fuse.sshfs", "fuse.glusterfs"}
)
"""Network file systems. The journal mode WAL does not work on them, because WAL needs locks and memory that different
hosts cannot share."""


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


def in_memory(name: str) -> bool:
    """Whether a database of this name is in memory."""
    return not name or name == ":memory:" or "mode=memory" in name


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


def file_system(file: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system that holds the file; empty if the type is unknown."""
    try:
        lines = mounts.read_text().splitlines()
        resolved = file.resolve()
    except OSError:
        return ""
    found, depth = "", -1
    for line in lines:
        _device, point, kind, *_rest = line.split(" ")
        path = Path(point.replace("\\040", " "))
        # If two file systems are mounted at the same place, the later mount hides the earlier mount.
        if resolved.is_relative_to(path) and len(path.parts) >= depth:
            found, depth = kind, len(path.parts)
    return found
