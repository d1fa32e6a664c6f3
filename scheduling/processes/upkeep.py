"""What every producer and consumer does before its heartbeats."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

from django.db import close_old_connections, connection, reset_queries
from django.db.models import QuerySet

from scheduling.processes import left_out
from scheduling.processes.database import DATABASE_ERRORS
from scheduling.processes.deployment_row import Values
from scheduling.processes.question import ask_at_once
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.sqlite_file import sqlite_file

LEAST_AGE_SECONDS = 60.0
"""A connection is kept open for at least this long. With Django's default for CONN_MAX_AGE, which is meant for the
requests of a web server, each heartbeat would connect anew."""

REFUSED = "refused rows"

Result = TypeVar("Result")


def on_open_connection(work: Callable[[], Result]) -> Result:
    """Call `work`. If the server has closed the connection since its last use, connect anew and call `work` again.

    So no statement is needed that only checks the connection.

    Args:
        work: does the same when it is called twice.

    Raises:
        django.db.DatabaseError: the database cannot be reached, or the error has nothing to do with the connection.
    """
    was_open = connection.connection is not None
    try:
        return work()
    except DATABASE_ERRORS:
        if not was_open or connection.in_atomic_block:
            raise
        if connection.connection is not None and connection.is_usable():
            raise
        with suppress(*DATABASE_ERRORS):
            connection.close()
    return work()


class Upkeep:
    """Keeps this process's connection, its clock and its list of refused rows up to date."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self._close_at = 0.0
        self.deployment: Values | None = None
        """The row of the deployment at the last turn; None if there was none."""

    def turn(self, questions: Mapping[str, QuerySet] | None = None) -> set[str]:
        """Do everything once.

        Args:
            questions: querysets by name, which are asked for in the same statement as the server's time and the row
                of the deployment.

        Returns:
            The names of the `questions` whose queryset has a row.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        self._close_old()
        reset_queries()
        sqlite_file.follow()
        answer = ask_at_once({**(questions or {}), REFUSED: left_out.tried_lately(self._clock.now())})
        self._clock.learn(answer.time)
        self.deployment = answer.deployment
        if REFUSED in answer.found:
            left_out.refresh(self._clock.now())
        return answer.found - {REFUSED}

    def _close_old(self) -> None:
        """Connect anew from time to time, as CONN_MAX_AGE says: the name of the server may lead to another host now."""
        monotonic = time.monotonic()
        if monotonic >= self._close_at:
            self._close_at = monotonic + max(LEAST_AGE_SECONDS, connection.settings_dict["CONN_MAX_AGE"] or 0.0)
            close_old_connections()
