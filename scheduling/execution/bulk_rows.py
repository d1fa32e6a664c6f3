"""Inserts many new executions at once.

Django's `bulk_create` converts each column of each row, which took most of the time, although most columns of runs from
code are the same. So the columns that all rows share are converted once. PostgreSQL takes the others as one table in
JSON. MariaDB and MySQL take rows of values: for rows from a table, they would lock the counter of the primary keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

from scheduling.execution.new_run import OWN, NewRun
from scheduling.execution.row_values import ROWS_PER_INSERT, insert_instances, prepared
from scheduling.execution.table_insert import Columns, Key, insert_table, key_of, keys_from, returning
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
            some = rows[start : start + ROWS_PER_STATEMENT]
            _set_keys(some, insert_table(some, _columns(some, shared)))
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
        _set_keys(rows, {key_of(one): one.pk for one in made})
    else:  # MySQL
        newest = _newest_key()
        insert_instances(made)
        _set_keys(rows, _keys_after(newest, shared))


def _columns(rows: Sequence[NewRun], shared: Mapping[str, Any]) -> Columns:
    return Columns.of(rows, OWN, shared)


def _insert_values(rows: Sequence[NewRun], shared: Mapping[str, Any]) -> None:
    """Insert rows of values. The driver writes the values that all rows share only once."""
    columns = _columns(rows, shared)
    returns = connection.features.can_return_rows_from_bulk_insert
    newest, keys = 0 if returns else _newest_key(), dict[Key, int]()
    with connection.cursor() as cursor:
        same = cursor.mogrify(", ".join(["%s"] * len(columns.same)), columns.values)
        text = (same if isinstance(same, str) else same.decode()).replace("%", "%%")
        line = f"({', '.join([text, *['%s'] * len(columns.differing)])})"
        for start in range(0, len(rows), ROWS_PER_INSERT):
            some = rows[start : start + ROWS_PER_INSERT]
            values = [prepared(field, getattr(row, field.attname)) for row in some for field in columns.differing]
            statement = f"{columns.insert} VALUES {', '.join([line] * len(some))}"
            cursor.execute(f"{statement} {returning()}" if returns else statement, values)
            if returns:
                keys |= keys_from(cursor.fetchall())
    _set_keys(rows, keys if returns else _keys_after(newest, shared))


def _newest_key() -> int:
    return SchedulerExecution.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _keys_after(newest: int, shared: Mapping[str, Any]) -> dict[Key, int]:
    """The primary keys of the rows of this call. MySQL returns none from an insert."""
    own = {name: shared[name] for name in ("container_id", "executed_at")}
    rows = SchedulerExecution.objects.filter(pk__gt=newest, **own)
    return keys_from(rows.values_list("scheduler_id", "execution_key", "pk"))


def _set_keys(rows: Sequence[NewRun], keys: Mapping[Key, int]) -> None:
    for row in rows:
        row.id = keys[key_of(row)]
