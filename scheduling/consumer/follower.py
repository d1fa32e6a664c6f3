"""Follows the runs of this consumer: finds those that are lost or cancelled, and stores their output."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from scheduling.consumer import leases
from scheduling.consumer.cancellation import cancel_run
from scheduling.consumer.fencing import kill_fenced
from scheduling.consumer.output_store import store_each
from scheduling.consumer.slots import Slots
from scheduling.logs import get_logger

log = get_logger(__name__)

STORE_SECONDS = 0.5
"""The seconds between two writes of output to the database. The run's page polls every second and must show new output
within two seconds."""

STORE_BYTES = 64 * 1024
"""If more output than this waits to be stored, the output is written before STORE_SECONDS are over."""

LOOK_SECONDS = 1.0
"""The seconds between two looks at the rows of the runs."""


class Follower:
    """Follows the runs until they are over.

    Args:
        now: gives the time of the database server.
    """

    def __init__(self, slots: Slots, now: Callable[[], datetime]) -> None:
        self._slots, self._now = slots, now
        self._look_at = self._store_at = 0.0

    @property
    def next_clock(self) -> float:
        """The monotonic time at which `follow` must be called next."""
        return min(self._look_at, self._store_at)

    def follow(self, monotonic: float) -> None:
        """Do what is due.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        slots = self._slots
        if not slots.busy:
            return
        if monotonic >= self._look_at:
            if self._look_at:  # 0.0 means that the first look is not planned yet
                self._look(monotonic)
            self._look_at = monotonic + LOOK_SECONDS
        if monotonic >= self._store_at or any(run.output.waiting > STORE_BYTES for run in slots.running):
            store_each(slots.owned, self._now())
            self._store_at = monotonic + STORE_SECONDS

    def _look(self, monotonic: float) -> None:
        for changed in leases.look(self._slots.owned):
            if changed.lost:
                log.warning("Lost its lease; the run is killed", extra={"execution": changed.run.execution_id})
                kill_fenced(self._slots, changed.run)
            else:
                cancel_run(self._slots, changed.run, changed.cancelled_by, monotonic)
