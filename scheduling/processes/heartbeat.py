"""Writes the row of this process and its heartbeat."""

from __future__ import annotations

import math
import os
import socket
from datetime import datetime
from typing import Any

from scheduling.core.clock_skew import Skew
from scheduling.models import Process
from scheduling.models.process import CLOCK_AHEAD
from scheduling.processes.identity import container_id

LONGEST_SECONDS = 15.0
"""The longest time between two heartbeats. This time is short, because a process counts as silent after 60 s."""


def heartbeat_seconds(lease_seconds: float) -> float:
    """Seconds between two heartbeats: at most a third of a lease, so that a lease survives one missed heartbeat."""
    return min(lease_seconds / 3, LONGEST_SECONDS)


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


def beat(now: datetime, skew: Skew, **info: Any) -> None:
    """Renew this process's heartbeat.

    Args:
        skew: how far this host's clock is from the database's.
    """
    info[CLOCK_AHEAD] = round(math.copysign(skew.certain, skew.seconds), 3)
    Process.objects.filter(container_id=container_id()).update(heartbeat_at=now, info=info)


def leave(now: datetime) -> None:
    """Record that this process has stopped properly."""
    Process.objects.filter(container_id=container_id()).update(stopped_at=now, heartbeat_at=now)
