"""Writes the row of this process and its heartbeat."""

from __future__ import annotations

import math
import os
import socket
from datetime import datetime
from typing import Any

from scheduling.core.broker_alarm import Alarm
from scheduling.core.clock_skew import Skew
from scheduling.core.deployment import Hold
from scheduling.core.lifecycle import heartbeat_seconds
from scheduling.models import Process
from scheduling.models.process import ALARM, CLOCK_AHEAD, HELD
from scheduling.processes.identity import container_id
from scheduling.processes.loaded_code import LoadedCode

__all__ = ["arrive", "beat", "heartbeat_seconds", "leave"]


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
            "handler_set_id": None,
        },
    )


def beat(
    now: datetime, skew: Skew, code: LoadedCode, hold: Hold | None = None, alarm: Alarm | None = None, **info: Any
) -> None:
    """Renew this process's heartbeat.

    Args:
        skew: how far this host's clock is from the database's.
        code: what this process has loaded. Its last look at the files is recorded.
        hold: why this process claims, starts and publishes nothing; None if it works.
        alarm: why the broker takes none of its messages; None if it takes them.
    """
    if hold is not None:
        info[HELD] = hold.said
    if alarm is not None:
        info[ALARM] = [alarm.why, round(alarm.seconds)]
    info[CLOCK_AHEAD] = round(math.copysign(skew.certain, skew.seconds), 3)
    Process.objects.filter(container_id=container_id()).update(heartbeat_at=now, info=info, **_code(code))


def leave(now: datetime, code: LoadedCode) -> None:
    """Record that this process has stopped properly."""
    Process.objects.filter(container_id=container_id()).update(stopped_at=now, heartbeat_at=now, **_code(code))


def _code(code: LoadedCode) -> dict[str, datetime | None]:
    return {"code_at": code.loaded_at, "code_changed_at": code.changed_at}
