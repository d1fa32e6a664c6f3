"""Limits how long a transaction of this process may be idle. The server then ends the connection, and its locks.

A process may be paused inside a transaction: its machine sleeps or moves, or the process gets SIGSTOP. Without a limit,
its rows stay locked until it goes on, and no other process can recover its runs.

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
        statement = "SELECT set_config('idle_in_transaction_session_timeout', %s, false)"
        value: str | int = str(seconds * 1000)
    elif connection.vendor == "mysql":
        # https://mariadb.com/kb/en/transaction-timeouts/. MySQL limits idle connections only; a producer or consumer
        # uses its connection several times in the length of a lease.
        mariadb = connection.mysql_is_mariadb  # type: ignore[attr-defined]
        statement = f"SET SESSION {'idle_transaction_timeout' if mariadb else 'wait_timeout'} = %s"
        value = seconds
    else:
        return
    with connection.cursor() as cursor:
        cursor.execute(statement, [value])
