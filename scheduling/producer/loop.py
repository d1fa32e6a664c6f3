"""The producer's loop: sleep until an occurrence is due, then claim, publish and sweep."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import DatabaseError

from scheduling.broker import Broker, BrokerError
from scheduling.conf import get_conf
from scheduling.core.deployment import Held, Hold
from scheduling.execution import zone_plan
from scheduling.execution.after_runs import look
from scheduling.execution.claim import claim_due, next_due
from scheduling.execution.mending import Mending
from scheduling.execution.publish import publish
from scheduling.handlers.known import make_known
from scheduling.handlers.registry import handler_modules
from scheduling.handlers.run_config import RunConfigs
from scheduling.inbox.sync import sync
from scheduling.logs import get_logger
from scheduling.models import Process
from scheduling.pings.sender import questions, sender
from scheduling.processes import heartbeat
from scheduling.processes.database_access import DatabaseAccess
from scheduling.processes.figures import figures
from scheduling.processes.guard import guard
from scheduling.processes.identity import container_id
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.renewal import Renewal
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.shutdown import ShutdownRequest
from scheduling.processes.upkeep import Upkeep, on_open_connection
from scheduling.producer.changed_schedules import ChangedSchedules
from scheduling.producer.first_producer import NO_BROKER, searches_here
from scheduling.producer.lost_messages import LostMessages
from scheduling.producer.sweeps import sweep
from scheduling.producer.zone_watch import ZoneWatch

log = get_logger(__name__)

PLAN_POLL_SECONDS = 0.5
"""The seconds between two reads of the earliest `next_run_at`. An edited schedule is noticed within this time."""

SWEEP_SECONDS = 2.0
SYNC_SECONDS = 60.0
MEND_SECONDS = 30.0
"""The seconds between two tries of the schedules that are set aside. A mended one goes on within a minute."""

QUIET = timedelta(seconds=3)
"""Reading the failed queue can take two seconds. So the queue is read when no occurrence falls due within this time."""


class Producer:
    """Claims and publishes due occurrences until the process is asked to stop. Several producers can run at once.

    Args:
        follow_code: whether the producer stops when a file of its code has changed, so that a new process loads it.
    """

    def __init__(
        self, broker: Broker, stop: ShutdownRequest, clock: ServerClock | None = None, *, follow_code: bool = False
    ) -> None:
        self.broker, self.stop = broker, stop
        self._code = LoadedCode(handler_modules())
        self.renewal = Renewal(self._code, stop) if follow_code else None
        self._clock = clock or ServerClock()
        self.now = self._clock.now
        self._configs, self._upkeep = RunConfigs(), Upkeep(self._clock)
        self._lost, self._mending = LostMessages(), Mending()
        self._changed, self._zones = ChangedSchedules(), ZoneWatch()
        self._searches = False
        """Whether this producer searches for lost messages; decided with each heartbeat."""
        self._mend_at = self._sweep_at = self._beat_at = self._sync_at = 0.0
        self._access = DatabaseAccess(get_conf().lease_seconds)
        self._hold: Hold | None = None
        self._is_known = False
        self._claimed = 0
        self._last_dispatch: datetime | None = None

    def run(self) -> None:
        """Work until the process is asked to stop. If the database or broker cannot be reached, wait and try again."""
        arrived = False
        log.info("Producer ready", extra={"producer": container_id()})
        while True:
            delay = PLAN_POLL_SECONDS
            try:
                if not arrived:
                    self._clock.compare()  # before the first turn, because a wrong clock must claim nothing
                    heartbeat.arrive(Process.Kind.PRODUCER, self.now())
                    arrived = True
                delay = self.turn()
                self._access.succeeded()
            except Exception as error:  # an error in one execution or schedule must not end the producer
                delay = self._access.failed(error)
                self._beat_at = 0.0  # the heartbeat shows first whether the database can be written again
            if self.renewal:
                self.renewal.apply(time.monotonic())
            if self.stop.wait(delay):
                break
        with suppress(DatabaseError):
            heartbeat.leave(self.now(), self._code)
        with suppress(BrokerError):
            self.broker.close()
        log.info("Shutdown complete", extra={"producer": container_id()})

    def turn(self) -> float:
        """Do everything that is due. Returns the seconds to wait before the next turn."""
        monotonic = time.monotonic()
        figures.turns += 1
        self._beat_if_due(monotonic)
        if self._hold is not None or not self._clock.trusted:
            return PLAN_POLL_SECONDS
        try:
            return self._work(monotonic)
        except Held:
            self._beat_at = 0.0  # the next turn looks why, and records it
            return PLAN_POLL_SECONDS

    def _work(self, monotonic: float) -> float:
        if not self._is_known:
            make_known(self.now())
            self._is_known = True
        self._zones.turn(monotonic, self.now())
        due = next_due()
        now = self.now()
        if due is not None and due <= now:
            while self.dispatch() and not self.stop.asked:
                self._beat_if_due(time.monotonic())  # many occurrences at once take longer than two heartbeats
        if monotonic >= self._sweep_at:
            self._sweep_at = monotonic + SWEEP_SECONDS
            now = self.now()
            self._access.answered()
            lost = self._lost if self._searches else None
            sweep(self.broker, now, self._configs, lost, self._changed, lost_after=self._access.lost_after)
            self._mend(monotonic)
        if monotonic >= self._sync_at:
            self._sync_failed_queue(monotonic, quiet=due is None or due - now > QUIET)
        if due is None or due <= now:
            due = next_due()
        if due is None:
            return PLAN_POLL_SECONDS
        return min(max((due - self.now()).total_seconds(), 0.0), PLAN_POLL_SECONDS)

    def _mend(self, monotonic: float) -> None:
        if monotonic >= self._mend_at:
            self._mend_at = monotonic + MEND_SECONDS
            self._mending.turn(self.now())

    def _beat_if_due(self, monotonic: float) -> None:
        if monotonic < self._beat_at:
            return
        on_open_connection(lambda: self._beat(monotonic))
        self._beat_at = monotonic + heartbeat.heartbeat_seconds(get_conf().lease_seconds)

    def _beat(self, monotonic: float) -> None:
        found = self._upkeep.turn(questions(self.now()))
        self._hold = guard.beat(self.broker, self.now(), lambda: self._upkeep.deployment)
        figures.held = self._hold is not None
        sender.told(found, self.now, held=figures.held)
        last = self._last_dispatch.isoformat() if self._last_dispatch else None
        self._code.look(monotonic)
        doing = {"claimed": self._claimed, "last_dispatch": last, NO_BROKER: not self._lost.broker_answers}
        doing |= zone_plan.told()
        heartbeat.beat(self.now(), self._clock.skew, self._code, self._hold, self.broker.alarm, **doing)
        self._access.answered()
        self._searches = not self.broker.embedded and searches_here(self.now())

    def _sync_failed_queue(self, monotonic: float, *, quiet: bool) -> None:
        """Sync with the failed queue. If an occurrence is due soon, a later turn syncs, at most SYNC_SECONDS later."""
        if not quiet and monotonic <= self._sync_at + SYNC_SECONDS:
            return
        self._sync_at = monotonic + SYNC_SECONDS
        try:
            sync(self.broker, self.now())
        except BrokerError as error:
            log.debug("The failed queue cannot be read now: %s", error)

    def dispatch(self) -> bool:
        """Claim and publish one batch of occurrences. Returns whether more occurrences may be due."""
        now = self.now()
        done = claim_due(now, embedded=self.broker.embedded)
        published = publish(done.claimed, self.broker)
        if done.blocked:
            look(done.blocked, self.broker, now)
        if done.claimed or done.blocked or done.skipped or done.broken:
            self._claimed += len(done.claimed) + len(done.blocked)
            figures.claims += len(done.claimed) + len(done.blocked)
            self._last_dispatch = now
            broken = f", set aside {done.broken}" if done.broken else ""
            log.info("Claimed %s, published %s, skipped %s%s", len(done.claimed), published, done.skipped, broken)
        return done.full
