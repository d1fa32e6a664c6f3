"""Moves a cursor of a run with one statement, which also checks that the attempt still owns its execution.

A handler may store a cursor a thousand times a second. In several statements, each cursor would cost as many round
trips to the server.
"""

from __future__ import annotations

from functools import lru_cache

from django.db import connection
from django.utils import timezone as clock

from scheduling.core.lifecycle import State
from scheduling.execution.transitions import adapted
from scheduling.models import RunStep, SchedulerExecution


def move(execution_id: int, attempt: int, name: str, value: str) -> bool:
    """Store the position of a cursor. The row of the execution is locked until the transaction ends.

    Args:
        value: JSON; empty for None.

    Returns:
        False if nothing was stored: the run has no cursor of this name yet, or the attempt does not own its execution.
    """
    owner = [execution_id, attempt, State.RUNNING.value]
    mark = [value, attempt, adapted(clock.now())]
    cursor_of = [RunStep.Kind.CURSOR.value, name]
    values = [*owner, *mark, *cursor_of] if connection.vendor == "postgresql" else [*mark, *cursor_of, *owner]
    with connection.cursor() as cursor:
        cursor.execute(_statement(connection.vendor), values)
        return bool(cursor.rowcount > 0)  # MySQL counts the rows of both tables


@lru_cache(maxsize=3)
def _statement(vendor: str) -> str:
    quote = connection.ops.quote_name
    step, execution = (quote(model._meta.db_table) for model in (RunStep, SchedulerExecution))
    owner = "e.id = %s AND e.attempt = %s AND e.state = %s"
    if vendor == "postgresql":
        # The lock of `processes.database.locking`.
        return (
            f"WITH owner AS MATERIALIZED (SELECT e.id FROM {execution} e WHERE {owner} FOR NO KEY UPDATE) "  # noqa: S608 (names of tables)
            f"UPDATE {step} s SET value = %s, attempt = %s, stored_at = %s FROM owner "
            f"WHERE s.execution_id = owner.id AND s.kind = %s AND s.name = %s"
        )
    if vendor == "mysql":
        # Only a table that the statement writes is locked. So it writes a column of the execution, and changes nothing.
        return (
            f"UPDATE {step} s JOIN {execution} e ON e.id = s.execution_id "  # noqa: S608
            f"SET s.value = %s, s.attempt = %s, s.stored_at = %s, e.attempt = e.attempt "
            f"WHERE s.kind = %s AND s.name = %s AND {owner}"
        )
    return (  # SQLite locks the whole database for each write.
        f"UPDATE {step} AS s SET value = %s, attempt = %s, stored_at = %s WHERE s.kind = %s AND s.name = %s "  # noqa: S608
        f"AND s.execution_id = (SELECT e.id FROM {execution} e WHERE {owner})"
    )
