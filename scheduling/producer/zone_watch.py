"""ZoneWatch: lets a producer plan the schedules anew if it has started with newer zone data."""

from __future__ import annotations

from datetime import datetime

from scheduling.execution import zone_plan
from scheduling.logs import get_logger
from scheduling.processes.database import is_away

log = get_logger(__name__)

LOOK_SECONDS = 30.0
"""The seconds between two looks whether another producer has other data."""


class ZoneWatch:
    """The turns of one producer. The first one comes before its first claim."""

    def __init__(self) -> None:
        self._is_adopted = False
        self._look_at = 0.0

    def turn(self, monotonic: float, now: datetime) -> None:
        """Record the data of this process if it is new, and do the next part of the planning."""
        if monotonic < self._look_at:
            return
        try:
            if not self._is_adopted:
                zone_plan.adopt(now)
                self._is_adopted = True
            if zone_plan.turn(now):
                return
        except Exception as error:
            if is_away(error):
                raise
            # Plain SQL has damaged a row of the zone data. The schedules run on by their present plans.
            log.exception("The schedules cannot be planned anew with this zone data. It is tried again.")
        self._look_at = monotonic + LOOK_SECONDS
