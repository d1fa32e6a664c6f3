"""Heartbeat: a consumer says that it lives, and renews the leases of what it runs."""

from __future__ import annotations

from datetime import datetime

from django.db import close_old_connections, reset_queries

from scheduling import presence
from scheduling.consumer import leases
from scheduling.consumer.slots import Slots
from scheduling.models import Process
from scheduling.targets import sync_targets

MOST_SECONDS = 15.0
"""Between two beats, however long a lease is: the admin calls a process silent after a minute."""


class Heartbeat:
    """Beats every third of a lease.

    Args:
        lease_seconds: how long a run stays this process's own without a beat.
    """

    def __init__(self, slots: Slots, lease_seconds: int, queue: str) -> None:
        self._slots, self._lease_seconds, self._queue = slots, lease_seconds, queue
        self._arrived = False
        self.next_clock = 0.0
        """The instant (monotonic) of the next beat."""

    def keep(self, monotonic: float, now: datetime, runs: int) -> None:
        """Beat, if it is time; the first one records this process's arrival.

        Args:
            runs: how many this process has started so far.
        """
        if monotonic < self.next_clock:
            return
        close_old_connections()
        reset_queries()
        slots = self._slots
        if not self._arrived:
            sync_targets()  # new code may be deployed without a migration
            presence.arrive(Process.Kind.CONSUMER, now, slots.count)
            self._arrived = True
        leases.renew([*slots.running, *slots.over], now, self._lease_seconds)
        presence.beat(now, running=len(slots.running), runs=runs, queue=self._queue)
        self.next_clock = monotonic + min(self._lease_seconds / 3, MOST_SECONDS)
