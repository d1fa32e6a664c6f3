"""Drain: how a consumer that was asked to stop comes to its end."""

from __future__ import annotations

from scheduling.consumer.slots import Slots
from scheduling.core.outcome import Interrupted
from scheduling.logs import get_logger
from scheduling.stop import Stop

log = get_logger(__name__)

NONE, ASKED, ENDED, KILLED = range(4)


class Drain:
    """Runs may finish within the grace time; then they are ended. A second signal does not wait at all.

    Args:
        grace_seconds: from the first signal on.
    """

    def __init__(self, stop: Stop, slots: Slots, grace_seconds: float) -> None:
        self._stop, self._slots, self._grace_seconds = stop, slots, grace_seconds
        self._stage = NONE
        self._until = 0.0

    def next_clock(self) -> float | None:
        """The instant (monotonic) at which `heed` has to act by itself."""
        return self._until if self._stage == ASKED else None

    def heed(self, monotonic: float) -> None:
        """Do what the signals so far and the clock ask for."""
        if not self._stop.asked:
            return
        if self._stage == NONE:
            self._stage, self._until = ASKED, monotonic + self._grace_seconds
            if running := self._slots.running:
                log.info(
                    "Asked to stop: %s runs may finish within %s s; ask again not to wait",
                    len(running),
                    self._grace_seconds,
                )
        if self._stop.asked > 1 and self._stage < KILLED:
            self._stage = KILLED
            for each in list(self._slots.running):
                self._slots.end(each, Interrupted(), monotonic, grace=0.0)
        elif self._stage == ASKED and monotonic >= self._until:
            self._stage = ENDED
            for each in list(self._slots.running):
                self._slots.end(each, Interrupted(), monotonic)
