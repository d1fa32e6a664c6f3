"""Names that lead to chosen addresses."""

from __future__ import annotations

import socket
from typing import Any

import pytest


def resolve(monkeypatch: pytest.MonkeyPatch, addresses: list[str]) -> None:
    """Let names lead to these addresses, one after the other."""
    real, left = socket.getaddrinfo, [*addresses]

    def look_up(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        if str(host)[:1].isdigit() or ":" in str(host):
            return real(host, port, *arguments, **options)
        return real(left.pop(0) if len(left) > 1 else left[0], port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
