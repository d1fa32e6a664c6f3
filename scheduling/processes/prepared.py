"""Prepared: a query whose SQL is built once, because the ORM needs longer to build it than the database to answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

_ANY_INSTANT = datetime(1234, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
"""Stands for the present time while the SQL is built. No other parameter of a query has this value."""


@dataclass(frozen=True)
class _Built:
    sql: str
    params: list[Any]
    instants: frozenset[int]
    """The positions of the parameters that are the present time."""
    columns: list[Any]


class Prepared:
    """A query of plain columns that depends on nothing but the present time.

    Args:
        build: makes the queryset, with `values_list`, for a present time. It is called once for each kind of database.
    """

    def __init__(self, build: Callable[[datetime], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._built: dict[str, _Built] = {}

    def rows(self, now: datetime) -> list[tuple[Any, ...]]:
        """Run the query. The rows are tuples, as those of `values_list`.

        Raises:
            django.db.DatabaseError: the database has refused the query.
            Exception: a value cannot be read.
        """
        built = self._built.get(connection.vendor)
        if built is None:
            built = self._built[connection.vendor] = _built(self._build(_ANY_INSTANT))
        at = connection.ops.adapt_datetimefield_value(now)
        params = [at if number in built.instants else value for number, value in enumerate(built.params)]
        with connection.cursor() as cursor:
            cursor.execute(built.sql, params)
            found = cursor.fetchall()
        return [tuple(row) for row in _converted(found, built.columns)] if found else []


def _built(rows: QuerySet[Any, Any]) -> _Built:
    compiler = rows.query.get_compiler(connection=connection)
    sql, params = compiler.as_sql()
    marker = connection.ops.adapt_datetimefield_value(_ANY_INSTANT)
    instants = frozenset(number for number, value in enumerate(params) if value == marker)
    return _Built(sql, list(params), instants, [column for column, _sql, _alias in compiler.select])


def _converted(found: Any, columns: list[Any]) -> Any:
    """The rows with the values that Python code expects.

    The converters belong to a connection, so they are not kept: the next call may come from another thread.
    """
    compiler: Any = QuerySet(columns[0].target.model).query.get_compiler(connection=connection)
    return compiler.apply_converters(found, compiler.get_converters(columns))
