"""Inserts many new executions at once.

Django's `bulk_create` converts each column of each row, which took most of the time, although most columns of runs from
code are the same. So the columns that all rows share are converted once. PostgreSQL takes the others as one table in
JSON. MariaDB and MySQL take rows of values: for rows from a table, they would lock the counter of the primary keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db import connection

from scheduling.execution.new_run import OWN, NewRun
from scheduling.execution.row_values import FIELDS, ROWS_PER_INSERT, insert_instances, prepared
from scheduling.models import SchedulerExecution

LEAST_ROWS = 100
"""With fewer rows, model instances are as fast."""

ROWS_PER_STATEMENT = 10_000
"""PostgreSQL gets the columns that differ only."""


def insert_rows(rows: Sequence[NewRun], shared: Mapping[str, Any]) -> None:
    """Insert executions and set their primary keys.

    Args:
        rows: each has an `execution_key` of its own.
        shared: see `shared_columns`.
    """
    if connection.vendor == "postgresql" and len(rows) >= LEAST_ROWS:
        for start in range(0, len(rows), ROWS_PER_STATEMENT):
            _insert_table(rows[start : start + ROWS_PER_STATEMENT], shared)
    elif connection.vendor == "mysql" and len(rows) >= LEAST_ROWS:
        _insert_values(rows, shared)
    elif len(rows) == 1:
        made = rows[0].instance(shared)
        made.save(force_insert=True)
        rows[0].id = made.pk
    elif rows:
        _insert_instances(rows, shared)


def _insert_instances(rows: Sequence[NewRun], shared: Mapping[str, Any]) -> None:
    made = [row.instance(shared) for row in rows]
    if connection.features.can_return_rows_from_bulk_insert:
        insert_instances(made)
        _set_keys(rows, {one.execution_key: one.pk for one in made})
    else:  # MySQL
        newest = _newest_key()
        insert_instances(made)
        _set_keys(rows, _keys_after(newest, shared))


@dataclass(frozen=True)
class _Columns:
    """The columns of rows: those that all rows share, with their values, and those that differ."""

    same: list[Any]
    values: list[Any]
    differing: list[Any]

    @classmethod
    def of(cls, rows: Sequence[NewRun], shared: Mapping[str, Any]) -> _Columns:
        names = {name for name in OWN if _differ(list(map(attrgetter(name), rows)))}
        same = [field for field in FIELDS if field.attname not in names]
        given = {**shared, **{name: getattr(rows[0], name) for name in OWN}}
        values = [field.get_db_prep_save(given[field.attname], connection) for field in same]
        return cls(same, values, [field for field in FIELDS if field.attname in names])

    @property
    def insert(self) -> str:
        """The first part of the statement."""
        quote = connection.ops.quote_name
        columns = ", ".join(quote(str(field.column)) for field in (*self.same, *self.differing))
        return f"INSERT INTO {quote(SchedulerExecution._meta.db_table)} ({columns})"


def _returning() -> str:
    quote = connection.ops.quote_name
    return f"RETURNING {quote('execution_key')}, {quote('id')}"


def _insert_table(rows: Sequence[NewRun], shared: Mapping[str, Any]) -> None:
    """Insert the columns that differ as a table, and beside it those that all rows share."""
    columns, quote = _Columns.of(rows, shared), connection.ops.quote_name
    differing = columns.differing
    taken = ", ".join([*["%s"] * len(columns.same), *(f"given.{quote(field.attname)}" for field in differing)])
    types = ", ".join(f"{quote(field.attname)} {field.db_type(connection)}" for field in differing)
    names = [field.attname for field in differing]
    table = json.dumps([{name: getattr(row, name) for name in names} for row in rows], default=datetime.isoformat)
    with connection.cursor() as cursor:
        cursor.execute(
            f"{columns.insert} SELECT {taken} FROM jsonb_to_recordset(%s::jsonb) AS given({types}) {_returning()}",  # noqa: S608 (names of columns)
            [*columns.values, table],
        )
        _set_keys(rows, dict(cursor.fetchall()))


def _insert_values(rows: Sequence[NewRun], shared: Mapping[str, Any]) -> None:
    """Insert rows of values. The driver writes the values that all rows share only once."""
    columns = _Columns.of(rows, shared)
    returns = connection.features.can_return_rows_from_bulk_insert
    newest, keys = 0 if returns else _newest_key(), dict[str, int]()
    with connection.cursor() as cursor:
        same = cursor.mogrify(", ".join(["%s"] * len(columns.same)), columns.values)
        text = (same if isinstance(same, str) else same.decode()).replace("%", "%%")
        line = f"({', '.join([text, *['%s'] * len(columns.differing)])})"
        for start in range(0, len(rows), ROWS_PER_INSERT):
            some = rows[start : start + ROWS_PER_INSERT]
            values = [prepared(field, getattr(row, field.attname)) for row in some for field in columns.differing]
            statement = f"{columns.insert} VALUES {', '.join([line] * len(some))}"
            cursor.execute(f"{statement} {_returning()}" if returns else statement, values)
            if returns:
                keys |= dict(cursor.fetchall())
    _set_keys(rows, keys if returns else _keys_after(newest, shared))


def _newest_key() -> int:
    return SchedulerExecution.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _keys_after(newest: int, shared: Mapping[str, Any]) -> dict[str, int]:
    """The primary keys of the rows of this call, by their execution keys. MySQL returns none from an insert."""
    own = {name: shared[name] for name in ("container_id", "executed_at")}
    return dict(SchedulerExecution.objects.filter(pk__gt=newest, **own).values_list("execution_key", "pk"))


def _differ(values: list[Any]) -> bool:
    return values.count(values[0]) < len(values)


def _set_keys(rows: Sequence[NewRun], keys: Mapping[str, int]) -> None:
    for row in rows:
        row.id = keys[row.execution_key]
