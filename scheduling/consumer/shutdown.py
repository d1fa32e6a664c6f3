"""The shutdown of a consumer. Runs may finish within the grace time. After the grace time, the consumer ends them.

A run with checkpoints is handed back at its next checkpoint (`Run.stopping`).

After SIGUSR1, runs may take as long as they need. A stop signal then starts the grace time.

Services do not finish. They are asked to end at once, and are killed after the grace time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from scheduling.consumer.running import Running
from scheduling.consumer.slots import TERM_GRACE_SECONDS, Slots
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
        return self._until if self._stage == ASKED and self._until < math.inf else None

    def apply(self, monotonic: float) -> None:
        """End the runs if a second stop signal has arrived or the grace time is over."""
        if not self._stop.asked:
            return
        if self._stage == NONE:
            self._ask(monotonic)
        if self._stage == ASKED and self._until == math.inf and not self._stop.patient:
            self._until = monotonic + self._grace_seconds
            log.info("Asked to stop: runs may finish within %s s; ask again not to wait", self._grace_seconds)
        for run in self._slots.running:
            if not run.config.service:
                run.announce_stop()
        if self._stop.asked > 1 and self._stage < KILLED:
            self._stage = KILLED
            self._end(self._slots.running, monotonic, grace=0.0)
        elif self._stage == ASKED and monotonic >= self._until:
            self._stage = ENDED
            self._end([run for run in self._slots.running if not run.config.service], monotonic)

    def _ask(self, monotonic: float) -> None:
        self._stage, self._until = ASKED, math.inf
        services = [run for run in self._slots.running if run.config.service]
        if number := len(self._slots.running) - len(services):
            patient = "; they may take as long as needed" if self._stop.patient else ""
            log.info("Asked to stop: runs under way: %s%s", number, patient)
        if services:
            # A service never ends by itself. The sooner it is given back, the sooner another consumer starts it.
            log.info("Asked to stop: services that end now, within %s s: %s", self._grace_seconds, len(services))
            self._end(services, monotonic, self._grace_seconds)

    def _end(self, runs: Iterable[Running], monotonic: float, grace: float = TERM_GRACE_SECONDS) -> None:
        for run in list(runs):
            self._slots.end(run, Interrupted(), monotonic, grace)
