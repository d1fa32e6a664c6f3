"""Gives our processes the modes of SQLite that they need, so that a project needs no settings for it.

With the journal mode WAL, readers and one writer work at the same time. With IMMEDIATE, a transaction takes the write
lock at its beginning; otherwise a transaction that reads and then writes may fail with "database is locked".

What the project's OPTIONS say stays as it is. The project's own processes, such as its web server, are left alone. The
mode WAL is stored in the file, so it is the same for them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from scheduling.logs import get_logger
from scheduling.processes.sqlite_place import NETWORK, file_system, in_memory

log = get_logger(__name__)

WAIT_MS = 20_000
"""How long a statement waits for the write lock, unless OPTIONS have a `timeout`."""


def set_sqlite_modes() -> None:
    """Set the modes on the default database's connections of this process, now and whenever one is opened."""
    connection_created.connect(_set, dispatch_uid="scheduling.sqlite_modes")
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.connection is not None:
        _set(connection)


def _set(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or connection.alias != DEFAULT_DB_ALIAS or in_memory(name):
        return
    options = connection.settings_dict["OPTIONS"]
    backend: Any = connection
    if "transaction_mode" not in options:
        backend.transaction_mode = "IMMEDIATE"
    with connection.cursor() as cursor:
        if "timeout" not in options:
            cursor.execute(f"PRAGMA busy_timeout = {WAIT_MS}")
        if "journal_mode" in str(options.get("init_command", "")).lower() or file_system(Path(name)) in NETWORK:
            return  # WAL does not work on network file systems
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except DatabaseError as error:  # another process holds a lock; the next connection tries it again
            log.debug("The journal mode of SQLite stays as it is: %s", error)
