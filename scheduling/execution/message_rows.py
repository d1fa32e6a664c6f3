"""Reads the columns of executions that decide whether a message may start them.

The statement is built once for each database, because the query runs for every attempt, and the ORM would need four
times as long to build a statement as the database needs to run it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection

from scheduling.models import SchedulerExecution
from scheduling.models.execution import MESSAGE_COLUMNS


class MessageRow(NamedTuple):
    """The state of an execution, and the columns that `message_of` reads."""

    state: str
    wake_at: datetime | None
    id: int
    type: str
    target_id: int | None
    scheduler_id: int | None
    params: Any
    attempt: int
    retry_base: int
    execution_key: str
    scheduled_at: datetime | None
    trigger: str
    group_id: int | None
    headers: Any


Conversion = tuple[int, Any, Callable[..., Any]]
"""The number of a column, its expression, and what makes a Python value of the database's value."""


@lru_cache(maxsize=8)
def _statement(vendor: str) -> tuple[str, list[Conversion]]:
    """The SQL statement up to its condition, with names quoted for this database, and the conversions of its rows."""
    columns = ("state", "wake_at", *MESSAGE_COLUMNS)
    assert columns == MessageRow._fields  # noqa: S101 - one order of the columns
    compiler = SchedulerExecution.objects.order_by().values_list(*columns).query.get_compiler(connection=connection)
    statement, _ = compiler.as_sql()
    expressions = [expression for expression, *_ in compiler.select]
    conversions = [
        (number, expression, convert)
        for number, (converts, expression) in compiler.get_converters(expressions).items()
        for convert in converts
    ]
    return statement, conversions


def selected_columns() -> str:
    """The columns of a `MessageRow` in SQL, for example after RETURNING."""
    statement, _ = _statement(connection.vendor)
    return statement.removeprefix("SELECT ").partition(" FROM ")[0]


def row_of(values: Sequence[Any]) -> MessageRow:
    """Convert the values of `selected_columns`.

    Raises:
        ValueError: a value cannot be read, for example an instant with month 13 (SQLite).
    """
    found = list(values)
    for number, expression, convert in _statement(connection.vendor)[1]:
        found[number] = convert(found[number], expression, connection)
    return MessageRow(*found)


def message_rows(ids: Sequence[int]) -> dict[int, MessageRow]:
    """Read some executions.

    Returns:
        The rows by id. Ids that are not on record are left out.

    Raises:
        ValueError: a row holds a value that cannot be read.
    """
    statement, _ = _statement(connection.vendor)
    primary_key = connection.ops.quote_name(str(SchedulerExecution._meta.pk.column))
    with connection.cursor() as cursor:
        cursor.execute(f"{statement} WHERE {primary_key} IN ({', '.join(['%s'] * len(ids))})", list(ids))
        rows = [row_of(values) for values in cursor.fetchall()]
    return {row.id: row for row in rows}
