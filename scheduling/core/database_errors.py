"""Decides what a database error means: the database is away, the database refuses one item, or a table is missing.

The module knows the error codes of SQLite, PostgreSQL, MySQL and MariaDB.

"Away" means that the same statement may succeed later. For example, the database cannot be reached, is read-only, full,
failing over or shutting down, or has no free connection.

A conflict, such as a deadlock, also passes, but the database has answered.

Any other error, except a missing table or column, concerns the values of one item, such as a row or a message. The
caller sets this item aside and continues with the next item.
"""

from __future__ import annotations

import re
from enum import StrEnum

MISSING_TABLE = re.compile(r"no such (table|column)|has no column", re.IGNORECASE)
"""SQLite has no error code for a missing table or column, so the text of the error is searched."""


class Verdict(StrEnum):
    """What to do about an error."""

    AWAY = "away"
    """Wait, and then try the same statement again."""
    CONFLICT = "conflict"
    """Another transaction held the same rows. Wait for a moment, and then try again."""
    ITEM = "item"
    """Set aside the item whose statement failed."""
    NOT_MIGRATED = "not migrated"
    """Say that `manage.py migrate` is needed, and wait."""


# https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL_AWAY_CLASSES = frozenset(
    {
        "08",  # connection
        "25",  # transaction state; 25006 is a read-only server after a failover
        "53",  # resources: disk full, out of memory, too many connections
        "55",  # object not in the required state
        "57",  # operator intervention: shutdown, crash, cancelled statement
        "58",  # system: I/O
        "XX",  # internal, corrupted
    }
)
_POSTGRESQL_CONFLICTS = ("40", "55P03")  # rolled back: deadlock, serialization; a lock that is not available
_POSTGRESQL_MISSING = frozenset({"42P01", "42703", "3F000"})

# https://mariadb.com/kb/en/mariadb-error-code-reference/ and MySQL's reference. Both use the same numbers.
_MYSQL_AWAY = frozenset(
    {
        1021, 1030, 1114,  # disk or table full, storage engine
        1037, 1040, 1041, 1203, 1226,  # memory, connections, limits of a user
        1044, 1045, 1049, 1130, 1142, 1143,  # access denied, database does not exist
        1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 1969, 3024, 4031,  # shutdown, network, killed
        1317,  # interrupted
        1223, 1290, 1792, 1836, 3101,  # read lock, read-only server or transaction, group replication
        2000, 2001, 2002, 2003, 2005, 2006, 2012, 2013, 2026, 2027, 2055,  # client: connection
    }
)  # fmt: skip
_MYSQL_CONFLICTS = frozenset({1205, 1213})  # lock wait, deadlock
_MYSQL_MISSING = frozenset({1054, 1146})

# https://www.sqlite.org/rescode.html, primary codes
_SQLITE_AWAY = frozenset({3, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 17, 22, 23, 26})


def sqlite_verdict(code: int | None, text: str) -> Verdict:
    """The verdict for SQLite.

    Args:
        code: the (extended) result code; None if the error comes from the driver, not from SQLite.
    """
    if MISSING_TABLE.search(text):
        return Verdict.NOT_MIGRATED
    if code is None:
        return Verdict.AWAY if "closed" in text else Verdict.ITEM
    return Verdict.AWAY if code & 0xFF in _SQLITE_AWAY else Verdict.ITEM


def postgresql_verdict(sqlstate: str | None) -> Verdict:
    """The verdict for PostgreSQL.

    Args:
        sqlstate: the five-character error code; None for a connection error, which has no code.
    """
    if sqlstate is None:
        return Verdict.AWAY
    if sqlstate in _POSTGRESQL_MISSING:
        return Verdict.NOT_MIGRATED
    if sqlstate.startswith(_POSTGRESQL_CONFLICTS):
        return Verdict.CONFLICT
    return Verdict.AWAY if sqlstate[:2] in _POSTGRESQL_AWAY_CLASSES else Verdict.ITEM


def mysql_verdict(code: int | None) -> Verdict:
    """The verdict for MySQL and MariaDB.

    Args:
        code: the error number of the server or the client library; None or 0 if the connection was closed.
    """
    if not code:
        return Verdict.AWAY
    if code in _MYSQL_MISSING:
        return Verdict.NOT_MIGRATED
    if code in _MYSQL_CONFLICTS:
        return Verdict.CONFLICT
    return Verdict.AWAY if code in _MYSQL_AWAY else Verdict.ITEM
