"""Notices that the file of the SQLite database was deleted or replaced under an open connection."""

from __future__ import annotations

import threading

from django.db import connection

from scheduling.logs import get_logger
from scheduling.processes.file_identity import FileIdentity, file_identity

log = get_logger(__name__)


class SqliteFile:
    """Connects again if the file was deleted or replaced. Each thread has a connection of its own.

    An open connection would go on in the deleted file, which no other process sees and which is lost in the end.
    """

    def __init__(self) -> None:
        self._own = threading.local()

    def follow(self) -> bool:
        """Compare the file with the last call's. If it is another one, close the connection, and return True.

        Inside a transaction the connection stays open, and the caller must give the transaction up.
        """
        if connection.vendor != "sqlite":
            return False
        found = file_identity(str(connection.settings_dict["NAME"]))
        before: FileIdentity | None = getattr(self._own, "file", None)
        if before is None or found == before:
            self._own.file = found
            return False
        if connection.in_atomic_block:
            return True
        self._own.file = found
        log.error("The file of the SQLite database was deleted or replaced; connecting again")
        connection.close()
        return True


sqlite_file = SqliteFile()
"""The file of this process's database."""
