"""Gives each of many rows values of its own, in few statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, connections, models
from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.core.chunks import chunks

ROWS_PER_UPDATE = 150


def set_each(model: type[models.Model], names: Sequence[str], values: Mapping[int, Sequence[Any]], **same: Any) -> None:
    """Set columns of rows, each row to its own values. The caller has locked the rows.

    Django needs longer for the expressions of such a statement than the database for its execution. So the statement is
    plain SQL.

    Args:
        names: the columns that have values of their own.
        values: maps the primary key of each row to its values, in the order of `names`. None stands for NULL.
        same: further columns, with the value that all rows get.
    """
    fields = [model._meta.get_field(name) for name in names]
    own_connection = connections[connection.alias]  # each look through `connection` would cost as much as a conversion
    for some in chunks(list(values.items()), ROWS_PER_UPDATE):
        parts, parameters = list[str](), list[Any]()
        for place, field in enumerate(fields):
            known = [(pk, own[place]) for pk, own in some if own[place] is not None]
            whens = "".join(" WHEN %s THEN %s" for _one in known)
            parts.append(f"{_column(field)} = CASE id{whens} END" if known else f"{_column(field)} = NULL")
            for pk, value in known:
                parameters += [pk, _adapted(field, value, own_connection)]
        for name, value in same.items():
            field = model._meta.get_field(name)
            parts.append(f"{_column(field)} = %s")
            parameters.append(_adapted(field, value, own_connection))
        keys = [pk for pk, _own in some]
        table, marks = connection.ops.quote_name(model._meta.db_table), ", ".join(["%s"] * len(keys))
        statement = f"UPDATE {table} SET {', '.join(parts)} WHERE id IN ({marks})"  # noqa: S608 - names of columns
        with connection.cursor() as cursor:
            cursor.execute(statement, [*parameters, *keys])


def _column(field: Any) -> str:
    return connection.ops.quote_name(field.column)


def _adapted(field: Any, value: Any, own_connection: BaseDatabaseWrapper) -> Any:
    return field.get_db_prep_value(value, own_connection, prepared=True)
