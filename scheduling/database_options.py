"""Options for `DATABASES` that limit how long a lost database server goes unnoticed."""

from __future__ import annotations

from typing import Any

CONNECT_SECONDS = 3
"""How long one host may take to accept a connection. With two hosts in the DSN, the second one is tried after it."""

LOST_SECONDS = 10
"""How long sent data may stay without an answer from the server's host."""

IDLE_SECONDS, PROBE_SECONDS, PROBES = 5, 2, 3
"""After IDLE_SECONDS without data, the host is probed every PROBE_SECONDS, and lost after PROBES without an answer."""


def connection_limits(engine: str) -> dict[str, Any]:
    """Return the `OPTIONS` with which a connection ends 15 s after its server's host has vanished, at the latest.

    Without them, Linux keeps such a connection for 15 minutes. The limits concern the host, not the duration of a
    statement: a migration or a query may take hours.

    MySQL and MariaDB have no such options. There, the app itself sets the limits on each new connection
    (`scheduling.processes.lost_hosts`). `read_timeout` would end long statements, too.

    Args:
        engine: the `ENGINE` of the database, such as `django.db.backends.postgresql`.
    """
    match engine.rpartition(".")[2]:
        case "postgresql" | "postgis":
            return {
                "connect_timeout": CONNECT_SECONDS,
                "tcp_user_timeout": LOST_SECONDS * 1000,
                "keepalives": 1,
                "keepalives_idle": IDLE_SECONDS,
                "keepalives_interval": PROBE_SECONDS,
                "keepalives_count": PROBES,
            }
        case "mysql":
            return {"connect_timeout": CONNECT_SECONDS}
        case _:
            return {}
