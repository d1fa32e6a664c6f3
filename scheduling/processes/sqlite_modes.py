"""Gives SQLite the modes that several processes need, so that a project needs no settings for it.

With the journal mode WAL, readers and one writer work at the same time. With IMMEDIATE, a transaction takes the write
lock at its beginning; otherwise a transaction that reads and then writes may fail with "database is locked". Producers
and consumers write all the time, so the project's own processes, such as its web server, need the modes, too.

What the project's OPTIONS say stays as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.logs import get_logger
from scheduling.processes.sqlite_place import NETWORK, file_system, in_memory

log = get_logger(__name__)

WAIT_MS = 20_000
"""How long a statement waits for the write lock, unless OPTIONS have a `timeout`."""


def set_sqlite_modes(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
    """`connection_created` receiver that sets the modes on a connection to the default database."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or connection.alias != DEFAULT_DB_ALIAS or in_memory(name):
        return
    options = connection.settings_dict["OPTIONS"]
    backend: Any = connection
    if "transaction_mode" not in options:
        backend.transaction_mode = "IMMEDIATE"
    if "timeout" not in options:
        _execute(connection, f"PRAGMA busy_timeout = {WAIT_MS}")
    # WAL does not work on network file systems.
    if "journal_mode" not in str(options.get("init_command", "")).lower() and file_system(Path(name)) not in NETWORK:
        try:
            _execute(connection, "PRAGMA journal_mode = WAL")
        except DatabaseError as error:  # another process holds a lock; the next connection tries it again
            log.debug("The journal mode of SQLite stays as it is: %s", error)


def _execute(connection: BaseDatabaseWrapper, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
