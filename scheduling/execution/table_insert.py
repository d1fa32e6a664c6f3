"""Inserts rows of executions that share most of their values. The values that all rows share are converted once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db import connection

from scheduling.models import SchedulerExecution

FIELDS = [field for field in SchedulerExecution._meta.concrete_fields if not field.primary_key]
"""The columns of a new row. None of them has a default of the database or a value that is set at each save."""

Key = tuple[int | None, str]
"""The schedule of an execution and its execution key."""


def key_of(row: Any) -> Key:
    """The key of a row, by which its primary key is found after the insert."""
    return row.scheduler_id, row.execution_key


@dataclass(frozen=True)
class Columns:
    """The columns of rows: those that all rows share, with their values, and those that differ."""

    same: list[Any]
    values: list[Any]
    differing: list[Any]

    @classmethod
    def of(cls, rows: Sequence[Any], names: Collection[str], shared: Mapping[str, Any]) -> Columns:
        """Compare the rows.

        Args:
            names: the attributes of the rows.
            shared: the values of the other columns, by attribute.
        """
        differing = {name for name in names if _differ(list(map(attrgetter(name), rows)))}
        same = [field for field in FIELDS if field.attname not in differing]
        given = {**shared, **{name: getattr(rows[0], name) for name in names}}
        values = [field.get_db_prep_save(given[field.attname], connection) for field in same]
        return cls(same, values, [field for field in FIELDS if field.attname in differing])

    @property
    def insert(self) -> str:
        """The first part of the statement."""
        quote = connection.ops.quote_name
        columns = ", ".join(quote(str(field.column)) for field in (*self.same, *self.differing))
        return f"INSERT INTO {quote(SchedulerExecution._meta.db_table)} ({columns})"


def returning() -> str:
    """The last part of a statement whose result `keys_from` reads."""
    return f"RETURNING {', '.join(map(connection.ops.quote_name, ('scheduler_id', 'execution_key', 'id')))}"


def keys_from(found: Iterable[tuple[Any, ...]]) -> dict[Key, int]:
    """The primary keys of the inserted rows."""
    return {(scheduler, key): pk for scheduler, key, pk in found}


def insert_table(rows: Sequence[Any], columns: Columns) -> dict[Key, int]:
    """On PostgreSQL, insert the columns that differ as a table in JSON, and beside it those that all rows share.

    Args:
        rows: rows that differ in one column at least.

    Returns:
        The primary keys.
    """
    quote, differing = connection.ops.quote_name, columns.differing
    taken = ", ".join([*["%s"] * len(columns.same), *(f"given.{quote(field.attname)}" for field in differing)])
    types = ", ".join(f"{quote(field.attname)} {field.db_type(connection)}" for field in differing)
    names = [field.attname for field in differing]
    table = json.dumps([{name: getattr(row, name) for name in names} for row in rows], default=datetime.isoformat)
    with connection.cursor() as cursor:
        cursor.execute(
            f"{columns.insert} SELECT {taken} FROM jsonb_to_recordset(%s::jsonb) AS given({types}) {returning()}",  # noqa: S608 (names of columns)
            [*columns.values, table],
        )
        return keys_from(cursor.fetchall())


def _differ(values: list[Any]) -> bool:
    return values.count(values[0]) < len(values)
