"""Notices which statements of a test may change schedules, so that unchanged rows need not be read again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created

from scheduling.models import Attempt, Deployment, Output, Process, RunStep, Scheduler, SchedulerExecution

_HARMLESS = "|".join(
    re.escape(model._meta.db_table) for model in (SchedulerExecution, Attempt, Output, RunStep, Process, Deployment)
)
_SCHEDULES = re.escape(Scheduler._meta.db_table)

_KEEPS_ALL = re.compile(
    rf'(?:SELECT\b|SAVEPOINT\b|RELEASE\b|(?:INSERT INTO|UPDATE|DELETE FROM) ["`](?:{_HARMLESS})["`])[^;]*\Z'
)
"""Statements that change no schedule, no target and no group."""

_MOVES = re.compile(
    rf'UPDATE ["`]{_SCHEDULES}["`] SET ["`]next_run_at["`] = (?:%s|NULL) WHERE [^;]*\Z'  # noqa: S608 - runs nothing
)
"""The statement with which a claim moves schedules to their next occurrences."""


class Changes:
    """Counts the statements that may have changed a schedule, a target or a group.

    It counts the statements of all connections that this thread has, and of all connections that are made meanwhile.
    A statement that it does not know counts as a change. What it does not notice: a function of the database that
    writes and is called by a SELECT or by `callproc`, and a statement on a cursor of the driver itself.
    """

    def __init__(self) -> None:
        self.plans = 0
        """The number of statements that may have changed when a schedule is due."""
        self.rows = 0
        """The number of statements that may have changed another column of a schedule, or a target or a group."""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the statements that run inside the `with` block."""
        with ExitStack() as wrapped:

            def wrap(connection: Any, **_arguments: object) -> None:
                wrapped.enter_context(connection.execute_wrapper(self._count))

            for connection in connections.all(initialized_only=True):
                wrap(connection)
            connection_created.connect(wrap)
            wrapped.callback(connection_created.disconnect, wrap)
            yield

    def _count(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
        text = str(sql)
        if not _KEEPS_ALL.match(text):
            self.plans += 1
            self.rows += not _MOVES.match(text)
        return execute(sql, params, many, context)
