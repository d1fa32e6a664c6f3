"""How much space the disks of this host have left."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings

from scheduling.alerts.memory import Memory

SECONDS = 1.0
"""So long the answer of the disks is waited for. A network file system may hang for ever."""

FRESH = timedelta(minutes=1)
"""So long the answer is remembered, also if there is none."""

NAMES = ("DATA_DIR", "MEDIA_ROOT")
"""The settings that name folders on the disks that are watched."""

_asking = threading.Lock()


def free_shares(now: datetime, memory: Memory, seconds: float = SECONDS) -> Mapping[str, float]:
    """The free share of the disk of each folder, from 0 to 1. A folder that cannot be looked at is left out."""
    return memory.get("disks", now, FRESH, lambda: _asked(_shares, seconds))


def _asked(ask: Callable[[], dict[str, float]], seconds: float) -> dict[str, float]:
    """Ask in a thread, and wait for at most so many seconds. While the last question hangs, none is asked."""
    if not _asking.acquire(blocking=False):
        return {}
    found: dict[str, float] = {}

    def work() -> None:
        try:
            found.update(ask())
        finally:
            _asking.release()

    thread = threading.Thread(target=work, name="disks", daemon=True)
    thread.start()
    thread.join(seconds)
    return {} if thread.is_alive() else found


def _shares() -> dict[str, float]:
    found: dict[str, float] = {}
    for name in NAMES:
        folder = getattr(settings, name, None)
        if not folder:
            continue
        try:
            usage = shutil.disk_usage(Path(folder))
        except (OSError, ValueError, TypeError):  # the folder may not exist yet
            continue
        if usage.total > 0:
            found[name] = usage.free / usage.total
    return found
