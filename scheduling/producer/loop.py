"""The producer's loop: sleep until something is due, claim, publish, sweep."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import DatabaseError, close_old_connections, connection, reset_queries
from django.utils import timezone as clock

from scheduling import presence
from scheduling.brief import Briefs
from scheduling.broker import Broker, BrokerError
from scheduling.claim import claim_due, next_due
from scheduling.dispatch import publish
from scheduling.identity import container_id
from scheduling.logs import get_logger
from scheduling.lost import Lost
from scheduling.models import Process
from scheduling.parked import sync
from scheduling.reconcile import sweep
from scheduling.stop import Stop
from scheduling.targets import sync_targets

log = get_logger(__name__)

LOOK_SECONDS = 0.5
"""How often the earliest `next_run_at` is read: an edit is seen within this time."""

SWEEP_SECONDS = 2.0
BEAT_SECONDS = 5.0
SYNC_SECONDS = 60.0
QUIET = timedelta(seconds=3)
"""The failed queue is only read when nothing falls due for so long: many messages take a second or two."""


class Producer:
    """Claims and publishes until asked to stop. Any number of producers may run side by side."""

    def __init__(self, broker: Broker, stop: Stop, now: Callable[[], datetime] = clock.now) -> None:
        self.broker, self.stop, self.now = broker, stop, now
        self._briefs = Briefs()
        self._lost = Lost()
        self._sweep_at = self._beat_at = self._sync_at = 0.0
        self._failures = 0
        self._claimed = 0
        self._last_dispatch: datetime | None = None

    def run(self) -> None:
        """Loop until asked to stop; an unreachable database or broker is waited for, not died of."""
        arrived = False
        log.info("Producer ready", extra={"producer": container_id()})
        while True:
            delay = LOOK_SECONDS
            try:
                if not arrived:
                    sync_targets()  # new code may be deployed without a migration
                    presence.arrive(Process.Kind.PRODUCER, self.now())
                    arrived = True
                delay = self.turn()
                self._failures = 0
            except DatabaseError as error:
                delay = self._rest(error)
            if self.stop.wait(delay):
                break
        with suppress(DatabaseError):
            presence.leave(self.now())
        with suppress(BrokerError):
            self.broker.close()
        log.info("Shutdown complete", extra={"producer": container_id()})

    def turn(self) -> float:
        """Do what is due; returns the seconds until the next look."""
        monotonic = time.monotonic()
        if monotonic >= self._beat_at:
            close_old_connections()
            reset_queries()
            self._beat_at = monotonic + BEAT_SECONDS
            last = self._last_dispatch.isoformat() if self._last_dispatch else None
            presence.beat(self.now(), claimed=self._claimed, last_dispatch=last)
        due = next_due()
        now = self.now()
        if due is not None and due <= now:
            while self.dispatch() and not self.stop.asked:
                pass
        if monotonic >= self._sweep_at:
            self._sweep_at = monotonic + SWEEP_SECONDS
            sweep(self.broker, self.now(), self._briefs, self._lost)
        if monotonic >= self._sync_at and (
            due is None or due - now > QUIET or monotonic > self._sync_at + SYNC_SECONDS
        ):
            self._sync_at = monotonic + SYNC_SECONDS
            try:
                sync(self.broker, self.now())
            except BrokerError as error:
                log.debug("The failed queue cannot be read now: %s", error)
        if due is None or due <= now:
            due = next_due()
        if due is None:
            return LOOK_SECONDS
        return min(max((due - self.now()).total_seconds(), 0.0), LOOK_SECONDS)

    def dispatch(self) -> bool:
        """Claim and publish one batch; whether there may be more."""
        now = self.now()
        done = claim_due(now, embedded=self.broker.embedded)
        published = publish(done.claimed, self.broker)
        if done.claimed or done.skipped or done.broken:
            self._claimed += len(done.claimed)
            self._last_dispatch = now
            log.info(
                "Claimed %s, published %s, skipped %s%s",
                len(done.claimed),
                published,
                done.skipped,
                f", set aside {done.broken}" if done.broken else "",
            )
        return done.full

    def _rest(self, error: DatabaseError) -> float:
        self._failures += 1
        delay = min(0.25 * 2.0 ** min(self._failures, 5), 5.0)
        log.warning("The database did not answer; trying again in %.1f s: %s", delay, str(error).strip())
        with suppress(Exception):
            connection.close()
        return delay
