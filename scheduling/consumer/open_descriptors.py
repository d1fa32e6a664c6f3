"""Records the open descriptors of a child process, and finds those that a handler has opened, closed or replaced."""

from __future__ import annotations

import os
from collections import Counter

from django.db import connections

from scheduling.processes.file_identity import FileIdentity, file_identity

_LINUX = "/proc/self/fd"
_FOLDER = _LINUX if os.path.isdir(_LINUX) else "/dev/fd"


class OpenDescriptors:
    """A snapshot. Make it while no database connection is open."""

    def __init__(self) -> None:
        self._recorded = _open_now()

    def are_unchanged(self) -> bool:
        """Whether the open descriptors are the recorded ones, apart from those of Django's database connections."""
        if self._are_exactly_recorded():
            return True
        now = _open_now()
        if now == self._recorded:
            return True
        ours, files = _of_connections()
        open_files = Counter(found for number, found in now.items() if number not in ours)
        # A file that is open more often than there are connections belongs to a connection that the handler has kept.
        if any(open_files[found] > count for found, count in files.items()):
            return False
        others = {number: found for number, found in now.items() if number not in ours and found not in files}
        return others == self._recorded

    def _are_exactly_recorded(self) -> bool:
        """The same answer, in half the time, if no connection is open. Since Linux 6.2, the folder's size counts."""
        if _FOLDER != _LINUX or os.stat(_FOLDER).st_size != len(self._recorded):
            return False
        return all(file_identity(number) == recorded for number, recorded in self._recorded.items())


def _open_now() -> dict[int, FileIdentity]:
    """The open descriptors by number. The descriptor that `listdir` itself used is closed already, and is left out."""
    found: dict[int, FileIdentity] = {}
    for name in os.listdir(_FOLDER):
        if (identity := file_identity(number := int(name))) is not None:
            found[number] = identity
    return found


def _of_connections() -> tuple[set[int], Counter[FileIdentity]]:
    """The descriptor numbers of all open database connections; for SQLite, how often each database file is open."""
    found: set[int] = set()
    files: Counter[FileIdentity] = Counter()
    for connection in connections.all(initialized_only=True):
        if connection.connection is None:
            continue
        if connection.vendor == "sqlite":
            for suffix in ("", "-wal", "-shm", "-journal"):
                if (identity := file_identity(f"{connection.settings_dict['NAME']}{suffix}")) is not None:
                    files[identity] += 1
        elif (fileno := getattr(connection.connection, "fileno", None)) is not None:
            found.add(fileno())
    return found, files
