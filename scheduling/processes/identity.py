"""`container_id`, the unique name of one start of a process."""

from __future__ import annotations

import os
import secrets
import socket
from functools import lru_cache


@lru_cache(maxsize=1)
def container_id() -> str:
    """The name `host-pid-random`. The random part is needed, because a restart may give the same host name and pid."""
    return f"{socket.gethostname()[:80]}-{os.getpid()}-{secrets.token_hex(4)}"
