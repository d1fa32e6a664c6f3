"""Tells the database that this consumer is alive: updates its process row and renews the leases of its runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scheduling.broker import Broker
from scheduling.consumer import leases
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.slots import Slots
from scheduling.core.chosen import EVERYTHING, Chosen
from scheduling.core.deployment import Hold
from scheduling.handlers.known import make_known
from scheduling.logs import get_logger
from scheduling.models import Process
from scheduling.models.process import CHOSEN, DRAINING, LAST_START
from scheduling.pings.sender import questions, sender
from scheduling.processes import heartbeat
from scheduling.processes.guard import guard
from scheduling.processes.identity import container_id
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.upkeep import Upkeep, on_open_connection

UPKEEP_BEATS = 2
"""Once in this many heartbeats, the consumer asks for the server's time, refused rows, due retries and the row of the
deployment. An idle consumer so sends three statements in two heartbeats. A held one asks with each heartbeat."""

log = get_logger(__name__)

FORKSERVER_SECONDS = 10.0
"""The longest time for which the first heartbeat waits for the forkserver. A consumer whose forkserver does not start
is then listed all the same."""


class KeepAlive:
    """Sends this consumer's heartbeats, one every `heartbeat_seconds(lease_seconds)` seconds.

    Args:
        broker: keeps the newest beat outside of the database.
        queues: the queues of this consumer.
        lease_seconds: how long a renewed lease lasts.
        rescue: is told with every second heartbeat whether retries wait that no message will start.
        code: what this consumer and its forkserver have loaded.
        chosen: the handlers that this consumer runs.
    """

    def __init__(
        self,
        broker: Broker,
        slots: Slots,
        lease_seconds: int,
        queues: Sequence[str],
        clock: ServerClock,
        code: LoadedCode,
        rescue: Rescue,
        chosen: Chosen = EVERYTHING,
    ) -> None:
        self._broker = broker
        self._chosen = {CHOSEN: str(chosen)} if chosen else {}
        self._slots, self._lease_seconds, self._clock = slots, lease_seconds, clock
        self._queues = ",".join(queues)
        self._code, self._rescue = code, rescue
        self._upkeep = Upkeep(clock)
        self._ready = self._said_ready = self._arrived = self._is_known = self._must_look = False
        self._beats = self._looked_runs = 0
        self._hold: Hold | None = None
        self.holds = True
        """Whether this consumer must take and settle nothing. It holds until it has looked for the first time."""
        self.next_clock = time.monotonic() + FORKSERVER_SECONDS
        """When the next heartbeat is due (monotonic)."""

    def keep(self, monotonic: float, runs: int, last_start: datetime | None = None, *, draining: bool = False) -> None:
        """Compare the clocks and send a heartbeat if one is due. The first heartbeat creates this process's row.

        It is due when the first run could start. A deploy ends an old consumer as soon as the new one is alive.

        Args:
            runs: how many runs this process has started so far.
            last_start: when it started the last one.
            draining: whether it has stopped taking runs.
        """
        if self._slots.pool.ready and not self._ready:
            self._ready, self.next_clock = True, monotonic
        if monotonic < self.next_clock:
            return
        doing: dict[str, Any] = {"runs": runs, LAST_START: last_start.isoformat() if last_start else None}
        if draining:
            doing[DRAINING] = True
        on_open_connection(lambda: self._beat(monotonic, doing))
        self._beats += 1
        if self._ready and not self._said_ready:
            self._said_ready = True
            context = {"concurrency": self._slots.count, "queue": self._queues, "consumer": container_id()}
            log.info("Consumer ready", extra=context)
        self.next_clock = monotonic + heartbeat.heartbeat_seconds(self._lease_seconds)

    def look_again(self) -> None:
        """Send the next heartbeat at once, and look with it why this consumer must hold."""
        self._must_look, self.next_clock = True, 0.0

    def _beat(self, monotonic: float, doing: dict[str, Any]) -> None:
        if self._beats % UPKEEP_BEATS == 0 or self._must_look:
            self._look(doing["runs"])
        slots, now = self._slots, self._clock.now()
        if not self._arrived:
            heartbeat.arrive(Process.Kind.CONSUMER, now, slots.count)
            self._arrived = True
        if self._hold is None and not self._is_known:
            make_known(now)
            self._is_known = True
        leases.renew([*slots.owned, *slots.over], now, self._lease_seconds)
        self._code.look(monotonic)
        doing |= {"running": slots.busy, "queue": self._queues} | self._chosen
        heartbeat.beat(now, self._clock.skew, self._code, self._hold, self._broker.alarm, **doing)
        self.holds = self._must_look = self._hold is not None

    def _look(self, runs: int) -> None:
        """Ask the database what this consumer must know, and whether it may work."""
        asked = self._rescue.questions(self._clock.now()) | questions(self._clock.now())
        found = self._upkeep.turn(asked)
        self._rescue.told(found)
        idle = runs == self._looked_runs and not self._slots.busy and not self._slots.over
        upkeep, now = self._upkeep, self._clock.now()
        self._hold = guard.beat(self._broker, now, lambda: upkeep.deployment, heartbeats=UPKEEP_BEATS, idle=idle)
        sender.told(found, self._clock.now, held=self._hold is not None)
        self._looked_runs = runs
