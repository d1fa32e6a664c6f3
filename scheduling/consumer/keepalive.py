"""Tells the database that this consumer is alive: updates its process row and renews the leases of its runs."""

from __future__ import annotations

from scheduling.consumer import leases
from scheduling.consumer.slots import Slots
from scheduling.handlers.targets import sync_targets
from scheduling.models import Process
from scheduling.processes import heartbeat
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.upkeep import Upkeep


class KeepAlive:
    """Sends this consumer's heartbeats, one every `heartbeat_seconds(lease_seconds)` seconds.

    Args:
        lease_seconds: how long a renewed lease lasts.
        code: what this consumer and its forkserver have loaded.
    """

    def __init__(self, slots: Slots, lease_seconds: int, queue: str, clock: ServerClock, code: LoadedCode) -> None:
        self._slots, self._lease_seconds, self._queue, self._clock = slots, lease_seconds, queue, clock
        self._code = code
        self._upkeep = Upkeep(clock)
        self._arrived = False
        self.next_clock = 0.0
        """When the next heartbeat is due (monotonic)."""

    def keep(self, monotonic: float, runs: int) -> None:
        """Compare the clocks and send a heartbeat if one is due. The first heartbeat creates this process's row.

        Args:
            runs: how many runs this process has started so far.
        """
        if monotonic < self.next_clock:
            return
        self._upkeep.turn()
        slots, now = self._slots, self._clock.now()
        if not self._arrived:
            sync_targets()  # new code may be deployed without a migration
            heartbeat.arrive(Process.Kind.CONSUMER, now, slots.count)
            self._arrived = True
        leases.renew([*slots.running, *slots.over], now, self._lease_seconds)
        self._code.look(monotonic)
        doing = {"running": len(slots.running), "runs": runs, "queue": self._queue}
        heartbeat.beat(now, self._clock.skew, self._code, **doing)
        self.next_clock = monotonic + heartbeat.heartbeat_seconds(self._lease_seconds)
