"""Chooses the producer that searches for lost messages: the first one that is alive, works and reaches the broker.

No lock is needed. If two producers search for a moment, because one was paused, they publish a row once, or a copy.
"""

from __future__ import annotations

from datetime import datetime

from scheduling.models import Process
from scheduling.models.process import HELD
from scheduling.processes.identity import container_id
from scheduling.processes.unusable_values import read

NO_BROKER = "broker_away"
"""The key of `Process.info` that is true if the broker did not answer this producer when it searched last."""


def searches_here(now: datetime) -> bool:
    """Whether this producer searches.

    After its first producer was killed, another one searches when the dead one counts as silent.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    alive = Process.objects.alive(now, Process.Kind.PRODUCER).order_by("id")
    found, _unreadable = read(alive, ["container_id", "info"])
    names = [name for name, _info in found]
    away = [isinstance(info, dict) and (info.get(NO_BROKER) or info.get(HELD)) for _name, info in found]
    reaching = [name for name, is_away in zip(names, away, strict=True) if not is_away]
    first = [*reaching, *names, container_id()][0]
    return bool(first == container_id())
