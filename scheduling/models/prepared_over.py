"""Queries by lists of values whose SQL is built once, because the ORM needs longer than the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from scheduling.models.prepared import Found, built_from, fetched

FIRST_MARK = 2_000_000_000
"""Numbers from here on stand for the lists while the SQL is built. No other parameter of a query is one."""


@dataclass(frozen=True)
class _Piece:
    """A piece of a statement that begins after a list.

    Args:
        after: the number of the list.
        text: the piece.
        params: its parameters.
    """

    after: int
    text: str
    params: list[Any]


@dataclass(frozen=True)
class _BuiltOver:
    """A statement up to its first list, and the pieces that follow."""

    text: str
    params: list[Any]
    pieces: Sequence[_Piece]
    columns: list[Any]


class PreparedOver:
    """A query of plain columns that depends on lists of values.

    Args:
        build: makes the queryset, with `values_list`, for the lists. It uses each list once, with `__in`. It is called
            once for each kind of database.
        kinds: the type of the values of each list, `int` or `str`.
    """

    def __init__(self, build: Callable[..., QuerySet[Any, Any]], *kinds: type[int] | type[str]) -> None:
        self._build, self._kinds = build, kinds
        self._built: dict[str, _BuiltOver] = {}

    def rows(self, *lists: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run the query. With an empty list, there are no rows.

        Raises:
            django.db.DatabaseError: the database has refused the query.
            ValueError: a key of a list of numbers is no number.
            Exception: a value cannot be read.
        """
        return self.found(*lists).converted()

    def found(self, *lists: Sequence[Any]) -> Found:
        """Run the query. The values are not converted yet.

        Raises:
            django.db.DatabaseError: the database has refused the query.
            ValueError: a key of a list of numbers is no number.
        """
        built = self._built.get(connection.vendor)
        if built is None:
            built = self._built[connection.vendor] = self._make()
        if not all(lists):
            return Found([], built.columns)
        sql, params = built.text, list(built.params)
        for piece in built.pieces:
            values = lists[piece.after]
            if self._kinds[piece.after] is int:
                # Drivers take long to quote and to pass hundreds of parameters. A number needs no quotes.
                sql += ",".join(str(int(value)) for value in values) + piece.text
            else:
                sql += ",".join(["%s"] * len(values)) + piece.text
                params += values
            params += piece.params
        return fetched(sql, params, built.columns)

    def _make(self) -> _BuiltOver:
        marks = [kind(FIRST_MARK + which) for which, kind in enumerate(self._kinds)]
        built = built_from(self._build(*([mark] for mark in marks)))
        texts = _split(built.sql)
        found = [value for value in built.params if value in marks]
        if len(found) != len(marks) or set(found) != set(marks) or len(texts) != len(built.params) + 1:
            raise AssertionError(f"The values of the query are not found in its statement: {built.sql}")
        if connection.vendor == "postgresql":
            texts = _with_arrays(texts, [value in marks and isinstance(value, int) for value in built.params])
        begin, begin_params, pieces = texts[0], list[Any](), list[_Piece]()
        for value, text in zip(built.params, texts[1:], strict=True):
            if value in marks:
                pieces.append(_Piece(marks.index(value), text, []))
            elif pieces:
                last = pieces[-1]
                pieces[-1] = _Piece(last.after, f"{last.text}%s{text}", [*last.params, value])
            else:
                begin, begin_params = f"{begin}%s{text}", [*begin_params, value]
        return _BuiltOver(begin, begin_params, pieces, built.columns)


def _split(sql: str) -> list[str]:
    """The texts between the placeholders of a statement. In it, `%%` stands for a percent sign."""
    return [text.replace("\0", "%%") for text in sql.replace("%%", "\0").split("%s")]


def _with_arrays(texts: Sequence[str], is_list: Sequence[bool]) -> list[str]:
    """The texts with an array in place of each list of numbers.

    PostgreSQL 17 and older count statements with lists of different lengths as different ones (`pg_stat_statements`).
    """
    found = list(texts)
    for place, chosen in enumerate(is_list):
        before, after = found[place], found[place + 1]
        if chosen and before.endswith("IN (") and after.startswith(")"):
            found[place], found[place + 1] = f"{before.removesuffix('IN (')}= ANY('{{", f"}}'){after[1:]}"
    return found
