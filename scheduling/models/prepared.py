"""Queries whose SQL is built once, because the ORM needs longer to build it than the database to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.utils.dateparse import parse_datetime

ANY_INSTANT = datetime(1234, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
"""Stands for the present time while the SQL is built. No other parameter of a query is near this instant."""

NEAR = timedelta(days=366)
"""A parameter that is at most so far from `ANY_INSTANT` was reckoned from the present time, such as a limit of it."""


@dataclass(frozen=True)
class Built:
    """The statement of a queryset."""

    sql: str
    params: list[Any]
    instants: Mapping[int, timedelta]
    """The positions of the parameters that were reckoned from the present time, and how far they are from it."""
    columns: list[Any]


@dataclass(frozen=True)
class Found:
    """What a query has found.

    Args:
        rows: the rows as the driver of the database gives them.
    """

    rows: Sequence[tuple[Any, ...]]
    columns: Sequence[Any]

    def converted(self, rows: Sequence[tuple[Any, ...]] | None = None) -> list[tuple[Any, ...]]:
        """The rows with the values that Python code expects.

        The converters belong to a connection, so they are not kept: the next call may come from another thread.

        Args:
            rows: some of the rows; None: all of them.

        Raises:
            Exception: a value cannot be read.
        """
        rows = self.rows if rows is None else rows
        if not rows:
            return []
        compiler: Any = QuerySet(self.columns[0].target.model).query.get_compiler(connection=connection)
        return [tuple(row) for row in compiler.apply_converters(rows, compiler.get_converters(self.columns))]


class Prepared:
    """A query of plain columns that depends on nothing but one instant, such as the present time.

    Args:
        build: makes the queryset, with `values_list`, for an instant. It is called once for each kind of database. Its
            conditions may have the instant, and instants that are a fixed span from it, at most `NEAR`.
    """

    def __init__(self, build: Callable[[datetime], QuerySet[Any, Any]]) -> None:
        self._build = build
        self._built: dict[str, Built] = {}

    def rows(self, now: datetime = ANY_INSTANT) -> list[tuple[Any, ...]]:
        """Run the query. The rows are tuples, as those of `values_list`.

        Args:
            now: the instant for which `build` is called. A query that depends on no instant needs none.

        Raises:
            django.db.DatabaseError: the database has refused the query.
            Exception: a value cannot be read.
        """
        return self.found(now).converted()

    def found(self, now: datetime = ANY_INSTANT) -> Found:
        """Run the query. The values are not converted yet.

        Raises:
            django.db.DatabaseError: the database has refused the query.
        """
        built, params = self._with_params(now)
        return fetched(built.sql, params, built.columns)

    def finds_one(self, now: datetime = ANY_INSTANT) -> tuple[str, list[Any]]:
        """Whether the query has a row, as a condition in SQL, and its parameters. The query is one of `any_of`.

        In a condition `EXISTS`, SQLite would not heed the order of the rows.
        """
        built, params = self._with_params(now)
        return f"({built.sql}) IS NOT NULL", params

    def _with_params(self, now: datetime) -> tuple[Built, list[Any]]:
        built = self._built.get(connection.vendor)
        if built is None:
            built = self._built[connection.vendor] = self._make()
        adapt, params = connection.ops.adapt_datetimefield_value, list(built.params)
        at = adapt(now)
        for number, span in built.instants.items():
            params[number] = adapt(now + span) if span else at
        return built, params

    def _make(self) -> Built:
        return built_from(self._build(ANY_INSTANT))


class PreparedUnion(Prepared):
    """Several queries of the same columns that are run together, in one round trip. The rows are in no order.

    Args:
        builds: make the querysets. See `Prepared`.
    """

    def __init__(self, builds: Sequence[Callable[[datetime], QuerySet[Any, Any]]]) -> None:
        super().__init__(builds[0])
        self._builds = builds

    def _make(self) -> Built:
        parts = [built_from(build(ANY_INSTANT)) for build in self._builds]
        if connection.features.supports_parentheses_in_compound:
            texts = [f"({one.sql})" for one in parts]
        else:
            texts = [f"SELECT * FROM ({one.sql})" for one in parts]  # noqa: S608 - Django's own SQL
        params = [value for one in parts for value in one.params]
        return Built(" UNION ALL ".join(texts), params, _instants(params), parts[0].columns)


def any_of(build: Callable[[datetime], QuerySet[Any, Any]]) -> Prepared:
    """The query for the key of one of these rows, for `has_any_rows`.

    Args:
        build: see `Prepared`, without `values_list`. The rows are in the order of the columns of an index. Otherwise,
            SQLite may read the whole table: if almost all rows have the same value, it takes no index to find another.
    """
    return Prepared(lambda now: build(now).values_list("pk")[:1])


def has_any_rows(questions: Sequence[tuple[Prepared, datetime]]) -> bool:
    """Whether one of the queries has a row for its instant. They are asked together, in one round trip.

    Raises:
        django.db.DatabaseError: the database has refused one of them.
    """
    conditions = [query.finds_one(now) for query, now in questions]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {' OR '.join(sql for sql, _params in conditions)}",
            [value for _sql, params in conditions for value in params],
        )
        return bool(cursor.fetchone()[0])


def fetched(sql: str, params: list[Any], columns: list[Any]) -> Found:
    """Run a statement of plain columns.

    Raises:
        django.db.DatabaseError: the database has refused it.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return Found(cursor.fetchall(), columns)


def built_from(rows: QuerySet[Any, Any]) -> Built:
    """The statement of a queryset that was made for `ANY_INSTANT`."""
    compiler = rows.query.get_compiler(connection=connection)
    sql, params = compiler.as_sql()
    return Built(sql, list(params), _instants(params), [column for column, _sql, _alias in compiler.select])


def _instants(params: Sequence[Any]) -> dict[int, timedelta]:
    marker = _instant(connection.ops.adapt_datetimefield_value(ANY_INSTANT))
    found = {number: at for number, value in enumerate(params) if (at := _instant(value)) is not None}
    spans = {number: at - marker for number, at in found.items()} if marker is not None else {}
    return {number: span for number, span in spans.items() if abs(span) <= NEAR}


def _instant(param: Any) -> datetime | None:
    """The instant that a parameter is, in UTC or in the zone of the connection; None if it is none."""
    if isinstance(param, str):  # SQLite and MySQL get texts
        with suppress(ValueError):
            param = parse_datetime(param)
    return param.replace(tzinfo=None) if isinstance(param, datetime) else None
