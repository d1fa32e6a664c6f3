"""Refuses connections to internal addresses. It needs the extra `http` or `notify`, so it is imported when needed."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection
from ipaddress import ip_address
from typing import Any

from requests.adapters import HTTPAdapter
from requests_hardened.ip_filter import InvalidIPAddress
from requests_hardened.ip_filter_adapter import IPFilterAdapter

from scheduling.core.internal_hosts import is_special, may_be_internal


class AddressFilter(IPFilterAdapter):  # type: ignore[misc]  # the package has no types
    """Connects to hosts with a public address, and to the named hosts.

    The host is compared where the connection is made. Two programs can read different hosts out of one URL, so a host
    that was read from the URL before could be another one.

    Args:
        scheme: `http` or `https`.
        hosts: hosts that may have an internal address: `name` or `name:port`, in lower case.
        watch: is called with the socket of each new connection.
    """

    def __init__(self, scheme: str, hosts: Collection[str], watch: Callable[[socket.socket], None]) -> None:
        super().__init__(is_https_proto=scheme == "https")
        self._hosts = frozenset(hosts)
        self._watch = watch

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        watch = self._watch

        class Watched(pool.ConnectionCls):  # type: ignore[misc]
            def _new_conn(self) -> socket.socket:
                found: socket.socket = super()._new_conn()
                watch(found)
                return found

        pool.ConnectionCls = Watched
        return pool

    def build_connection_pool_key_attributes(self, request: Any, verify: Any, cert: Any = None) -> Any:
        unfiltered = HTTPAdapter.build_connection_pool_key_attributes(self, request, verify, cert)
        called = unfiltered[0]
        if may_be_internal(self._hosts, called["scheme"], called["host"], called["port"]):
            return unfiltered
        found = super().build_connection_pool_key_attributes(request, verify, cert)
        pinned = ip_address(found[0]["host"].strip("[]"))
        if is_special(pinned):
            raise InvalidIPAddress(pinned)
        return found
