"""Who may read the metrics: programs with the bearer token, and hosts with one of the given addresses."""

from __future__ import annotations

import secrets
from enum import Enum
from ipaddress import IPv6Address, ip_address

from django.http import HttpRequest

from scheduling.conf import Conf


class Access(Enum):
    """What a request may do. The value is the HTTP status of the answer."""

    ALLOWED = 200
    UNAUTHORIZED = 401
    FORBIDDEN = 403
    OFF = 404


def access(request: HttpRequest, conf: Conf) -> Access:
    """Decide about a request. A token or an address is enough."""
    if not conf.metrics_token and not conf.metrics_addresses:
        return Access.OFF
    if _has_token(request, conf.metrics_token) or _has_address(request, conf):
        return Access.ALLOWED
    return Access.UNAUTHORIZED if conf.metrics_token else Access.FORBIDDEN


def _has_token(request: HttpRequest, token: str) -> bool:
    scheme, _space, shown = request.headers.get("Authorization", "").partition(" ")
    # The comparison takes as long for a token that is wrong at its end.
    same = secrets.compare_digest(shown.strip().encode(errors="replace"), token.encode())
    return bool(token) and scheme.lower() == "bearer" and same


def _has_address(request: HttpRequest, conf: Conf) -> bool:
    """Only the address of the connection counts. Each client can write any header."""
    try:
        address = ip_address(str(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in conf.metrics_addresses)
