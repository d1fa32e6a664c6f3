"""Which hosts may have an address of the internal network, by the setting CRON_INTERNAL_HOSTS."""

from __future__ import annotations

from collections.abc import Collection

DEFAULT_PORTS = {"http": 80, "https": 443}


def may_be_internal(hosts: Collection[str], scheme: str, host: str, port: int | None) -> bool:
    """Whether the setting names the host of a URL, without a port or with that of the URL.

    Args:
        hosts: the names in the setting: `name` or `name:port`, in lower case.
        port: the port in the URL. If it has none, the port of its scheme is called.
    """
    return host in hosts or f"{host}:{port or DEFAULT_PORTS.get(scheme)}" in hosts
