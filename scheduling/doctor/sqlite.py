"""What only SQLite has to be asked: its file, its journal, and where it lies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.doctor.finding import Finding, fail, ok

NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "glusterfs", "fuse.sshfs", "fuse.glusterfs"}
)
"""File systems whose locks and shared memory do not hold between hosts, which WAL needs."""


def missing(connection: BaseDatabaseWrapper) -> Finding | None:
    """A database in memory, or a file that is not there; connecting would make an empty one."""
    name = str(connection.settings_dict["NAME"])
    if in_memory(name):
        return fail("reachable", "The database is in memory: each process would have its own.", "Name a file.")
    if not Path(name).exists():
        return fail("reachable", f"There is no database file {name}.", "Run: manage.py migrate")
    return None


def in_memory(name: str) -> bool:
    """Whether the name says so."""
    return not name or name == ":memory:" or "mode=memory" in name


def examine(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Journal, transactions, and the place of the file."""
    file = Path(str(connection.settings_dict["NAME"]))
    backend: Any = connection
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        journal = str(cursor.fetchone()[0]).upper()
    if journal == "WAL":
        yield ok("journal", "WAL: readers and the writer work side by side.")
    else:
        yield fail(
            "journal",
            f"{journal}: a reader stops every writer, and runs fail with 'database is locked'.",
            'OPTIONS: {"init_command": "PRAGMA journal_mode=WAL;"}',
        )
    mode = getattr(backend, "transaction_mode", None)
    if mode == "IMMEDIATE":
        yield ok("transactions", "IMMEDIATE: writers take turns.")
    else:
        yield fail(
            "transactions",
            f"{mode or 'DEFERRED'}: two writers can meet halfway, and one fails with 'database is locked'.",
            'OPTIONS: {"transaction_mode": "IMMEDIATE", "timeout": 20}',
        )
    if os.access(file, os.W_OK) and os.access(file.parent, os.W_OK):
        yield ok("writable", "Yes.")
    else:
        # SQLite also writes -wal and -shm files beside it.
        yield fail("writable", f"This user may not write {file} and its folder.", "Change their owner or mode.")
    kind = file_system(file)
    if kind in NETWORK:
        yield fail(
            "file system",
            f"{file} lies on {kind}: locks do not hold there, and the file can be damaged.",
            "Put it on a local disk, or use MySQL, MariaDB or PostgreSQL for more than one host.",
        )
    elif kind:
        yield ok("file system", f"{kind}, on this host. Use a database server for more than one host.")


def file_system(file: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system a file lies on; empty where this cannot be told."""
    try:
        lines = mounts.read_text().splitlines()
        resolved = file.resolve()
    except OSError:
        return ""
    found, depth = "", -1
    for line in lines:
        _device, point, kind, *_rest = line.split(" ")
        path = Path(point.replace("\\040", " "))
        # Of two mounts on one point the later hides the earlier.
        if resolved.is_relative_to(path) and len(path.parts) >= depth:
            found, depth = kind, len(path.parts)
    return found
