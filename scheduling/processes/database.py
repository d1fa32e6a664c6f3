"""Decides what to do after a database error: wait and try again, or set aside the item that the database refused.

The functions of `core.database_errors` decide from the driver's error. Django keeps the driver's error as `__cause__`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import QuerySet

from scheduling.core.database_errors import Verdict, mysql_verdict, postgresql_verdict, sqlite_verdict
from scheduling.core.deployment import Held

Item = TypeVar("Item")

DATABASE_ERRORS = (DatabaseError, InterfaceError)
"""What a statement or a connection may raise. In Django, an InterfaceError is no DatabaseError."""


def verdict_of(error: BaseException, vendor: str = "") -> Verdict:
    """Decide whether the database cannot be reached, is not migrated yet, met a conflict, or has refused an item.

    The result is `Verdict.ITEM` for every exception that is not a database error. Such an exception means that Python
    or the driver could not convert one of the item's values.

    Args:
        vendor: the vendor of the connection that raised the error; if empty, the vendor of the default connection.
    """
    if not isinstance(error, DATABASE_ERRORS):
        return Verdict.ITEM
    cause: Any = error.__cause__
    match vendor or connection.vendor:
        case "sqlite":
            return sqlite_verdict(getattr(cause, "sqlite_errorcode", None), str(error))
        case "postgresql":
            if type(cause).__name__ in {"DataError", "IntegrityError", "ProgrammingError"} and _sqlstate(cause) is None:
                return Verdict.ITEM  # psycopg refused the value before the server saw it
            return postgresql_verdict(_sqlstate(cause))
        case "mysql":
            # Django raises some errors anew, without the driver's error as their cause: CHECK constraints and NULL.
            args = error.args if cause is None else cause.args
            code = args[0] if args else None
            if isinstance(code, str) and type(cause).__name__ in {"DataError", "ProgrammingError"}:
                return Verdict.ITEM  # mysqlclient refused the values before the server saw them
            return mysql_verdict(code if isinstance(code, int) else None)
        case _:
            return Verdict.AWAY if isinstance(error, InterfaceError) else Verdict.ITEM


def is_away(error: BaseException) -> bool:
    """Whether waiting may help, and no item is to blame.

    The database cannot be reached, is not migrated yet, met a conflict, or must be confirmed by a person
    (`core.deployment.Held`).
    """
    return isinstance(error, Held) or verdict_of(error) is not Verdict.ITEM


def locking(rows: QuerySet) -> QuerySet:
    """Lock the rows until the transaction ends, and leave them readable for the checks of foreign keys.

    PostgreSQL checks at the commit that the target of a changed schedule exists, and locks the row of the target for
    it. A lock that excludes such checks could wait for a transaction that waits for it: a deadlock.
    """
    return rows.select_for_update(no_key=connection.features.has_select_for_no_key_update)


def _sqlstate(cause: Any) -> str | None:
    return getattr(cause, "sqlstate", None)


def each_or_all(
    items: Sequence[Item], write: Callable[[Sequence[Item]], object], refused: Callable[[Item, Exception], object]
) -> None:
    """Write a batch in one transaction. If the database refuses the batch, write each item in its own transaction.

    Args:
        write: writes the given items, or raises an error.
        refused: called for each item that cannot be written, with the item and the error.

    Raises:
        django.db.DatabaseError: the database cannot be reached or is not migrated. The items that are not written yet
            can be tried again.
    """
    try:
        with transaction.atomic():
            write(items)
        return
    except Exception as error:
        if is_away(error):
            raise
    for item in items:
        try:
            with transaction.atomic():
                write([item])
        except Exception as error:
            if is_away(error):
                raise
            refused(item, error)
