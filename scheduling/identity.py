"""container_id: who a process is, unique per start."""

from __future__ import annotations

import os
import secrets
import socket
from functools import lru_cache


@lru_cache(maxsize=1)
def container_id() -> str:
    """`host-pid-random`: a host name and pid alone come back after a container restarts."""
    return f"{socket.gethostname()[:80]}-{os.getpid()}-{secrets.token_hex(4)}"
