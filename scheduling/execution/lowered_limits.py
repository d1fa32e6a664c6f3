"""Reads the limits that operators have lowered."""

from __future__ import annotations

import time

from scheduling.core.run_limit import Limit
from scheduling.logs import get_logger
from scheduling.models import LoweredLimit
from scheduling.processes.database import is_away

log = get_logger(__name__)

KEEP_SECONDS = 1.0
"""How long a process uses what it has read."""

MOST_ROWS = 10_000


class LoweredLimits:
    """The lowered limits, as one process knows them. They are read when a limited handler has something to start."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[object, object]] = {}
        self._until = 0.0

    def apply(self, type_: str, name: str, rules: Limit) -> Limit:
        """The limit that holds now."""
        if time.monotonic() >= self._until:
            self._found = _read()
            self._until = time.monotonic() + KEEP_SECONDS
        found = self._found.get((type_, name))
        return rules if found is None else rules.lowered(*found)


def _read() -> dict[tuple[str, str], tuple[object, object]]:
    try:
        rows = LoweredLimit.objects.values_list("type", "name", "at_once", "starts")[:MOST_ROWS]
        return {(type_, name): (at_once, starts) for type_, name, at_once, starts in rows}
    except Exception as error:
        if is_away(error):
            raise
        log.warning("The lowered limits cannot be read: %s", error)
        return {}
