"""The shutdown of a consumer. Runs may finish within the grace time. After the grace time, the consumer ends them."""

from __future__ import annotations

from scheduling.consumer.slots import Slots
from scheduling.core.outcome import Interrupted
from scheduling.logs import get_logger
from scheduling.processes.shutdown import ShutdownRequest

log = get_logger(__name__)

NONE, ASKED, ENDED, KILLED = range(4)
"""The stages of a shutdown: not asked, grace time, SIGTERM sent to the runs, SIGKILL sent to the runs."""


class Drain:
    """Ends the runs of a consumer that was asked to stop. A second stop signal kills the runs at once.

    Args:
        grace_seconds: how long runs may go on after the first signal.
    """

    def __init__(self, stop: ShutdownRequest, slots: Slots, grace_seconds: float) -> None:
        self._stop, self._slots, self._grace_seconds = stop, slots, grace_seconds
        self._stage = NONE
        self._until = 0.0

    def next_clock(self) -> float | None:
        """When the grace time ends (monotonic); None outside the grace time."""
        return self._until if self._stage == ASKED else None

    def apply(self, monotonic: float) -> None:
        """End the runs if a second stop signal has arrived or the grace time is over."""
        if not self._stop.asked:
            return
        if self._stage == NONE:
            self._stage, self._until = ASKED, monotonic + self._grace_seconds
            if running := self._slots.running:
                text = "Asked to stop: %s runs may finish within %s s; ask again not to wait"
                log.info(text, len(running), self._grace_seconds)
        if self._stop.asked > 1 and self._stage < KILLED:
            self._stage = KILLED
            for run in list(self._slots.running):
                self._slots.end(run, Interrupted(), monotonic, grace=0.0)
        elif self._stage == ASKED and monotonic >= self._until:
            self._stage = ENDED
            for run in list(self._slots.running):
                self._slots.end(run, Interrupted(), monotonic)
