"""Presence: a process's row, with its heartbeat."""

from __future__ import annotations

import os
import socket
from datetime import datetime
from typing import Any

from scheduling.identity import container_id
from scheduling.models import Process


def arrive(kind: Process.Kind, now: datetime, concurrency: int = 0) -> None:
    """Record that this process has started."""
    Process.objects.update_or_create(
        container_id=container_id(),
        defaults={
            "kind": kind,
            "host": socket.gethostname()[:255],
            "pid": os.getpid(),
            "concurrency": concurrency,
            "started_at": now,
            "heartbeat_at": now,
            "stopped_at": None,
        },
    )


def beat(now: datetime, **info: Any) -> None:
    """Renew this process's heartbeat."""
    Process.objects.filter(container_id=container_id()).update(heartbeat_at=now, info=info)


def leave(now: datetime) -> None:
    """Record an orderly end."""
    Process.objects.filter(container_id=container_id()).update(stopped_at=now, heartbeat_at=now)
