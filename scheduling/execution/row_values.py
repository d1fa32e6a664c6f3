"""Inserts rows of executions with a statement of our own.

Django's `bulk_create` asks the field of each column for each row, which took four fifths of the time of a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from types import NoneType
from typing import Any

from django.db import connection, models, transaction

from scheduling.execution.table_insert import FIELDS, Columns, insert_table, key_of
from scheduling.execution.transitions import adapted, adapting
from scheduling.models import SchedulerExecution

ROWS_PER_INSERT = 500

NAMES = [field.attname for field in FIELDS]


def _short_type(field: Any) -> type:
    """The type whose values need no conversion, or that `adapted` converts. Values of other types ask the field."""
    match field:
        case models.CharField() | models.TextField():
            return str
        case models.IntegerField() | models.ForeignKey():
            return int
        case models.DateTimeField():
            return datetime
        case _:
            return NoneType


_SHORT = {field.attname: _short_type(field) for field in FIELDS}


def prepared(field: Any, value: Any, adapt: Callable[[datetime | None], Any] = adapted) -> Any:
    """The value of a column as the database's driver takes it.

    Args:
        adapt: the result of `adapting`, for many values.

    Raises:
        Exception: the column does not take the value. Plain SQL may have put it into a schedule.
    """
    if value is None:
        return None
    if type(value) is not _SHORT[field.attname]:
        return field.get_db_prep_save(value, connection)
    return adapt(value) if type(value) is datetime else value


def insert_instances(made: Sequence[SchedulerExecution]) -> None:
    """Insert executions, all or none, and set their primary keys. MySQL does not tell the keys, so they stay None.

    Raises:
        IntegrityError: one of them has a key that is on record.
    """
    with transaction.atomic(savepoint=False):
        # On PostgreSQL, it takes psycopg four times as long to write out the values of many rows.
        as_table = connection.vendor == "postgresql" and len(made) > 1
        keys = _insert_as_table(made) if as_table else _insert_values(made)
    for row, key in zip(made, keys, strict=True):
        row.pk = key
        row._state.adding, row._state.db = False, connection.alias


def _insert_as_table(made: Sequence[SchedulerExecution]) -> list[int | None]:
    columns = Columns.of(made, NAMES, {})
    if not columns.differing:  # the unique key refuses them
        return _insert_values(made)
    found = insert_table(made, columns)
    return [found[key_of(row)] for row in made]


def _insert_values(made: Sequence[SchedulerExecution]) -> list[int | None]:
    most = connection.features.max_query_params
    count = ROWS_PER_INSERT if most is None else max(1, min(ROWS_PER_INSERT, most // len(FIELDS)))
    returns = connection.features.can_return_rows_from_bulk_insert
    keys, adapt = list[int | None](), adapting()
    with connection.cursor() as cursor:
        for start in range(0, len(made), count):
            some = made[start : start + count]
            values = [prepared(field, getattr(row, field.attname), adapt) for row in some for field in FIELDS]
            cursor.execute(_statement(connection.vendor, len(some), returns), values)
            # The keys come in the order of the rows. Django's `bulk_create` relies on it, too.
            keys += [key for (key,) in cursor.fetchall()] if returns else [None] * len(some)
    return keys


@lru_cache(maxsize=64)
def _statement(_vendor: str, count: int, returns: bool) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in FIELDS)
    row = f"({', '.join(['%s'] * len(FIELDS))})"
    statement = f"INSERT INTO {quote(SchedulerExecution._meta.db_table)} ({columns}) VALUES {', '.join([row] * count)}"  # noqa: S608
    return f"{statement} RETURNING {quote('id')}" if returns else statement
