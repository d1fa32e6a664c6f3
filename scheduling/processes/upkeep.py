"""What every producer and consumer does before each of its heartbeats."""

from __future__ import annotations

from django.db import close_old_connections, connection, reset_queries

from scheduling.logs import get_logger
from scheduling.processes import left_out
from scheduling.processes.file_identity import FileIdentity, file_identity
from scheduling.processes.server_clock import ServerClock

log = get_logger(__name__)


class Upkeep:
    """Keeps this process's connection, its clock and its list of refused rows up to date."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._file: FileIdentity | None = None

    def turn(self) -> None:
        """Do everything once.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        close_old_connections()
        reset_queries()
        self._follow_file()
        self._clock.compare()
        left_out.refresh(self._clock.now())

    def _follow_file(self) -> None:
        """Connect again if the SQLite file was deleted or replaced.

        An open connection would go on in the deleted file, which no other process sees and which is lost in the end.
        """
        if connection.vendor != "sqlite":
            return
        found = file_identity(str(connection.settings_dict["NAME"]))
        if self._file is not None and found != self._file:
            log.error("The file of the SQLite database was deleted or replaced; connecting again")
            connection.close()
        self._file = found
