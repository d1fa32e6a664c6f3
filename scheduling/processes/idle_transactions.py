"""Limits how long a transaction of this process may be idle. The server then ends the connection, and its locks.

A process may be paused inside a transaction: its machine sleeps or moves, or the process gets SIGSTOP. Without a limit,
its rows stay locked until it goes on, and no other process can recover its runs.

Behind a pooler such as pgbouncer, a session of the server belongs to many clients, and a limit would hit all of them.
So none is set there. The pooler has a limit of its own (`idle_transaction_timeout` of pgbouncer).

SQLite has no server that could end a transaction. All processes share one host there.
"""

from __future__ import annotations

from typing import Any

from django.db import connection as default_connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


def limit_idle_transactions(seconds: int) -> None:
    """Set the limit for all connections of this process, for an open one too.

    Args:
        seconds: the length of the lease. A consumer that is paused for longer has lost its runs anyway.
    """

    def limit(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
        _limit(connection, seconds)

    connection_created.connect(limit, weak=False, dispatch_uid="scheduling.idle_transactions")
    if default_connection.connection is not None:
        _limit(default_connection, seconds)


def _limit(connection: BaseDatabaseWrapper, seconds: int) -> None:
    if connection.vendor == "postgresql":
        # https://www.postgresql.org/docs/current/runtime-config-client.html: a number without unit is in milliseconds
        set_limit = "set_config('idle_in_transaction_session_timeout', %s, false)"
        statement = f"SELECT {set_limit} WHERE pg_backend_pid() = %s"
        values: list[str | int] = [str(seconds * 1000), own_session(connection)]
    elif connection.vendor == "mysql":
        # https://mariadb.com/kb/en/transaction-timeouts/. MySQL limits idle connections only; a producer or consumer
        # uses its connection several times in the length of a lease.
        mariadb = connection.mysql_is_mariadb  # type: ignore[attr-defined]
        statement = f"SET SESSION {'idle_transaction_timeout' if mariadb else 'wait_timeout'} = %s"
        values = [seconds]
    else:
        return
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def is_pooled(connection: BaseDatabaseWrapper) -> bool:
    """Whether a pooler such as pgbouncer stands between this process and PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return bool(cursor.fetchone()[0] != own_session(connection))


def own_session(connection: BaseDatabaseWrapper) -> int:
    """The id of the session that the server of PostgreSQL has announced. A pooler announces an id of its own."""
    return int(connection.connection.info.backend_pid)
