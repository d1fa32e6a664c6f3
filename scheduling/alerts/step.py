"""What an error means for a turn: whether another step of it can work."""

from __future__ import annotations

from collections.abc import Callable

from scheduling.core.database_errors import Verdict
from scheduling.processes.database import is_away, verdict_of

LOCKED = (5, 6)
"""SQLite: SQLITE_BUSY and SQLITE_LOCKED. Another process writes, so the database is not away."""


def tried(step: Callable[[], None]) -> Exception | None:
    """Take a step. Returns the error that has ended it.

    Raises:
        django.db.DatabaseError: the database cannot be reached, so no other step can work.
    """
    try:
        step()
    except Exception as error:
        if is_away(error):
            raise
        return error
    return None


def cannot_be_reached(error: Exception) -> bool:
    """Whether the database cannot be reached. It can, if another process only locks it."""
    if verdict_of(error) is not Verdict.AWAY:
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return code is None or code & 0xFF not in LOCKED
