"""Repeats a transaction that the database ended because of another transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError, connection

from scheduling.core.database_errors import Verdict
from scheduling.processes.database import verdict_of

Result = TypeVar("Result")

TRIES = 5


def again_after_conflicts(work: Callable[[], Result]) -> Result:
    """Do the work, and repeat it after a deadlock, at most TRIES times in all.

    Inside a transaction of the caller it is not repeated, because the database has rolled back the caller's work, too.

    Raises:
        django.db.OperationalError: the conflict of the last try.
    """
    if connection.in_atomic_block:
        return work()
    for _ in range(TRIES - 1):
        try:
            return work()
        except OperationalError as error:
            if verdict_of(error) is not Verdict.CONFLICT:
                raise
    return work()
