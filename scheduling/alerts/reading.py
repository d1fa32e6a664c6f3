"""Reads rows of which plain SQL may have made some unreadable. These are left out, and the others are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import Model, QuerySet

from scheduling.logs import get_logger
from scheduling.processes.database import is_away

log = get_logger(__name__)

Row = TypeVar("Row", bound=Model)


def tried(read: Callable[[], list[Any]]) -> tuple[list[Any], Exception | None]:
    """What `read` returns, or the error that it raises: a row cannot be read.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    try:
        with savepoint():
            return read(), None
    except Exception as error:
        if is_away(error):
            raise
        return [], error


def readable(rows: QuerySet[Any], most: int, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The values of the first rows that can be read.

    Args:
        most: at most so many rows are read.
        columns: the first one is `pk`.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    return readable_and_bad(rows, most, columns)[0]


def readable_and_bad(
    rows: QuerySet[Any], most: int, columns: Sequence[str]
) -> tuple[list[tuple[Any, ...]], Sequence[Any]]:
    """The same, and the keys of those of the first rows that cannot be read."""
    found, error = _read(rows.values_list(*columns)[:most])
    if error is None:
        return found, ()
    keys, error = _read(rows.values_list("pk", flat=True)[:most])
    if error is not None:
        raise error
    model = rows.model._default_manager.all()
    by_key = {row[0]: row for row in _halves(model, keys, columns)}
    return [by_key[key] for key in keys if key in by_key], [key for key in keys if key not in by_key]


def readable_rows(rows: QuerySet[Row], most: int) -> list[Row]:
    """The first rows that can be read, with all columns. In their order.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    found, error = _read(rows[:most])
    if error is None:
        return found
    keys, error = _read(rows.values_list("pk", flat=True)[:most])
    if error is not None:
        raise error
    each = (_halves(rows.model._default_manager.all(), [pk], ()) for pk in keys)
    return [row for found in each for row in found]


def _halves(rows: QuerySet[Any], keys: Sequence[Any], columns: Sequence[str]) -> list[Any]:
    """The rows with these keys that can be read. Halves are read, so that one bad row costs only a few queries."""
    chosen = rows.filter(pk__in=keys)
    found, error = _read(chosen.values_list(*columns) if columns else chosen)
    if error is None:
        return found
    if len(keys) <= 1:
        log.debug("A row of %s is left out: %s: %s", rows.model.__name__, keys, error)
        return []
    middle = len(keys) // 2
    return [*_halves(rows, keys[:middle], columns), *_halves(rows, keys[middle:], columns)]


def _read(rows: QuerySet[Any]) -> tuple[list[Any], Exception | None]:
    return tried(lambda: list(rows))


def savepoint() -> AbstractContextManager[Any]:
    """A savepoint inside a transaction, where a failed statement would make PostgreSQL refuse the next one."""
    return transaction.atomic() if connection.in_atomic_block else nullcontext()
