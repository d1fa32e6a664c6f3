"""Which hosts may have an address of the internal network, by the setting CRON_INTERNAL_HOSTS."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address

DEFAULT_PORTS = {"http": 80, "https": 443}


def may_be_internal(hosts: Collection[str], scheme: str, host: str, port: int | None) -> bool:
    """Whether the setting names the host of a URL, without a port or with that of the URL.

    Args:
        hosts: the names in the setting: `name` or `name:port`, in lower case.
        port: the port in the URL. If it has none, the port of its scheme is called.
    """
    return host in hosts or f"{host}:{port or DEFAULT_PORTS.get(scheme)}" in hosts


def is_special(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is not one of the public network, although it is not private by name.

    Site-local addresses (RFC 3879) are still used within networks. The reserved ones include those in which a network
    wraps an IPv4 address, such as `::127.0.0.1` and `::ffff:0:127.0.0.1`.
    """
    is_site_local = isinstance(address, IPv6Address) and address.is_site_local
    return is_site_local or address.is_reserved or address.is_unspecified
