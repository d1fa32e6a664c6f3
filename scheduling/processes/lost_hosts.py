"""Limits how long a connection to MySQL or MariaDB survives the loss of the server's host.

The client libraries have no options for this, so the limits are set on the socket. PostgreSQL's library has them: see
`scheduling.database_options`.
"""

from __future__ import annotations

import os
import socket
from contextlib import closing, suppress
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from scheduling.database_options import IDLE_SECONDS, LOST_SECONDS, PROBE_SECONDS, PROBES

_LIMITS = {
    "TCP_USER_TIMEOUT": LOST_SECONDS * 1000,
    "TCP_KEEPIDLE": IDLE_SECONDS,
    "TCP_KEEPINTVL": PROBE_SECONDS,
    "TCP_KEEPCNT": PROBES,
}
"""The socket options by name. A system may lack some of them."""


def descriptor(connection: BaseDatabaseWrapper) -> int | None:
    """The descriptor of the connection's socket; None if there is none."""
    raw: Any = connection.connection
    if raw is None:
        return None
    if connection.vendor == "postgresql":
        return int(raw.pgconn.socket)
    return int(raw.fileno()) if connection.vendor == "mysql" else None


def limit_lost_hosts(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
    """`connection_created` receiver that sets the limits on a connection to MySQL or MariaDB."""
    if connection.vendor != "mysql":
        return
    with suppress(OSError, AttributeError):  # another driver has no descriptor; the kernel's own limits stay
        _limit(descriptor(connection))


def _limit(number: int | None) -> None:
    if number is None:
        return
    with closing(socket.socket(fileno=os.dup(number))) as own:  # closing the copy leaves the connection open
        if own.family not in (socket.AF_INET, socket.AF_INET6):
            return
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _LIMITS.items():
            if (option := getattr(socket, name, None)) is not None:
                own.setsockopt(socket.IPPROTO_TCP, option, value)
