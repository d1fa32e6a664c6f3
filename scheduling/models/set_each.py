"""Gives each of many rows values of its own, in few statements."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.core.chunks import chunks

ROWS_PER_UPDATE = 150

MANY = 20
"""So many rows with the same values get a statement of their own, which names the values once."""

Own = tuple[int, Sequence[Any]]
"""The primary key of a row, and its values in the order of the columns."""


def set_each(model: type[models.Model], names: Sequence[str], values: Mapping[int, Sequence[Any]], **same: Any) -> None:
    """Set columns of rows, each row to its own values. The caller has locked the rows.

    Django needs longer for the expressions of such a statement than the database for its execution. So the statement is
    plain SQL.

    Args:
        names: the columns that have values of their own.
        values: maps the primary key of each row to its values, in the order of `names`. None stands for NULL.
        same: further columns, with the value that all rows get.
    """
    equal: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for pk, own in values.items():
        equal[tuple(own)].append(pk)
    apart: list[Own] = []
    for taken, keys in equal.items():
        if len(keys) < MANY:
            apart += [(pk, taken) for pk in keys]
            continue
        for some in chunks(keys):
            shared = dict(zip(names, taken, strict=True)) | same
            model._default_manager.filter(pk__in=some).update(**shared)
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    others = {model._meta.get_field(name): value for name, value in same.items()}
    if connection.vendor == "postgresql":
        _set_by_table(model, fields, apart, others)
        return
    for rows in chunks(apart, ROWS_PER_UPDATE):
        _set_by_cases(model, fields, rows, others)


def _set_by_cases(
    model: type[models.Model], fields: Sequence[Any], rows: Sequence[Own], same: Mapping[Any, Any]
) -> None:
    own_connection = connections[connection.alias]  # each look through `connection` would cost as much as a conversion
    parts, parameters = list[str](), list[Any]()
    for place, field in enumerate(fields):
        known = [(pk, own[place]) for pk, own in rows if own[place] is not None]
        whens = "".join(" WHEN %s THEN %s" for _one in known)
        parts.append(f"{_column(field)} = CASE id{whens} END" if known else f"{_column(field)} = NULL")
        for pk, value in known:
            parameters += [pk, _adapted(field, value, own_connection)]
    for field, value in same.items():
        parts.append(f"{_column(field)} = %s")
        parameters.append(_adapted(field, value, own_connection))
    keys = [pk for pk, _own in rows]
    table, marks = connection.ops.quote_name(model._meta.db_table), ", ".join(["%s"] * len(keys))
    statement = f"UPDATE {table} SET {', '.join(parts)} WHERE id IN ({marks})"  # noqa: S608 - names of columns
    with connection.cursor() as cursor:
        cursor.execute(statement, [*parameters, *keys])


def _set_by_table(
    model: type[models.Model], fields: Sequence[Any], rows: Sequence[Own], same: Mapping[Any, Any]
) -> None:
    """On PostgreSQL, give the values as a table in JSON: it looks through all cases of an expression for each row."""
    if not rows:
        return
    table, names = connection.ops.quote_name(model._meta.db_table), [f"c{n}" for n in range(len(fields))]
    given = ", ".join(f"{name} {field.db_type(connection)}" for name, field in zip(names, fields, strict=True))
    parts = [f"{_column(field)} = given.{name}" for name, field in zip(names, fields, strict=True)]
    parts += [f"{_column(field)} = %s" for field in same]
    listed = [{"id": pk, **dict(zip(names, own, strict=True))} for pk, own in rows]
    statement = (
        f"UPDATE {table} SET {', '.join(parts)} FROM jsonb_to_recordset(%s::jsonb) AS given(id bigint, {given}) "  # noqa: S608 - names of columns
        f"WHERE {table}.id = given.id"
    )
    others = [_adapted(field, value, connections[connection.alias]) for field, value in same.items()]
    with connection.cursor() as cursor:
        cursor.execute(statement, [*others, json.dumps(listed, default=datetime.isoformat)])


def _column(field: Any) -> str:
    return connection.ops.quote_name(field.column)


def _adapted(field: Any, value: Any, own_connection: BaseDatabaseWrapper) -> Any:
    return field.get_db_prep_value(value, own_connection, prepared=True)
