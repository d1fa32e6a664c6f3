"""Supervisor: what run_worker runs. One thread, one selector, a slot for each unit of concurrency.

A turn is: hear what children said; look at the clocks; then, in one transaction, settle what has
ended and start what waits. The row is written before the broker is answered.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import (
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.utils import timezone as clock

from scheduling import presence
from scheduling.adopt import is_strange
from scheduling.brief import Briefs
from scheduling.broker import Broker, BrokerError, Delivery
from scheduling.conf import Conf
from scheduling.consumer import leases
from scheduling.consumer.answers import Answers
from scheduling.consumer.arrivals import Arrival, Copy, Started, begin
from scheduling.consumer.drain import Drain
from scheduling.consumer.heartbeat import Heartbeat
from scheduling.consumer.rescue import Rescue
from scheduling.consumer.running import Running
from scheduling.consumer.slots import Slots
from scheduling.consumer.store import mark_stored, store_output
from scheduling.core.outcome import Cancelled
from scheduling.identity import container_id
from scheduling.logs import get_logger
from scheduling.settlement import Settled, settle_attempt
from scheduling.stop import Stop

log = get_logger(__name__)

POLL_SECONDS = 0.1
"""How often a transport that announces nothing is asked while slots are free."""

HUSH_SECONDS = 1.0
"""The same for one that announces its messages, in case a call was lost."""

STORE_SECONDS = 0.5
"""Between two writes of what runs have printed. A page that follows asks each second, and what a run prints
is to be seen within two."""

STORE_BYTES = 64 * 1024
LOOK_SECONDS = 1.0

REFUSALS = 3
"""Times a database may refuse a run's rows before its output, and then its result, is given up."""


class Supervisor:
    """Takes work, gives it to children, and records how it ended.

    Args:
        broker: the transport; this object owns it from now on.
        concurrency: how many runs at once.
        queue: `main` or `standalone`.
        max_runs: end after so many runs (tests, benchmarks); None for no end.
    """

    def __init__(
        self,
        broker: Broker,
        conf: Conf,
        stop: Stop,
        *,
        concurrency: int = 1,
        queue: str = "main",
        max_runs: int | None = None,
        now: Callable[[], datetime] = clock.now,
    ) -> None:
        self.broker, self.conf, self.stop = broker, conf, stop
        self.queue, self.max_runs, self.now = queue, max_runs, now
        self.started_total = 0
        self._briefs = Briefs()
        self._answers, self._rescue = Answers(broker, queue), Rescue(broker, queue)
        self._selector = selectors.DefaultSelector()
        self._slots = Slots(concurrency, self._selector, conf.output_max_bytes)
        self._look_at = self._store_at = self._poll_at = self._rest_until = 0.0
        self._failures = 0
        self._dismissed = False
        self._poll_seconds = POLL_SECONDS
        self._heartbeat = Heartbeat(self._slots, conf.lease_seconds, queue)
        self._drain = Drain(stop, self._slots, conf.grace_seconds)

    def run(self) -> None:
        """Work until asked to stop, then drain; returns when everything is settled or given back."""
        self._slots.nursery.start()
        self._selector.register(self.stop, selectors.EVENT_READ, self.stop.clear)
        # As many as there are slots: more would wait here while another consumer is idle.
        self.broker.consume(self.queue, self._slots.count)
        if (descriptor := self.broker.fileno()) is not None:
            self._selector.register(descriptor, selectors.EVENT_READ, self._called)
            self._poll_seconds = HUSH_SECONDS
        context = {"concurrency": self._slots.count, "queue": self.queue, "consumer": container_id()}
        log.info("Consumer ready", extra=context)
        try:
            while self._turn():
                pass
        finally:
            self._slots.nursery.stop()
            with suppress(BrokerError):
                self.broker.close()
            with suppress(DatabaseError):
                presence.leave(self.now())
            self._selector.close()
        log.info("Shutdown complete", extra={"consumer": container_id()})

    @property
    def draining(self) -> bool:
        """No new work is taken."""
        return self.stop.asked > 0 or (self.max_runs is not None and self.started_total >= self.max_runs)

    def _called(self) -> None:
        if self.broker.ready(self.queue, self.now()):  # which also silences the call
            self._poll_at = 0.0

    def _turn(self) -> bool:
        for key, _ in self._selector.select(self._patience(time.monotonic())):
            key.data()
        monotonic = time.monotonic()
        self._drain.heed(monotonic)
        if self.draining and not self._dismissed:
            self._dismissed = True
            self.broker.consume(self.queue, 0)
        self._slots.tend(monotonic, self.draining)
        if monotonic >= self._rest_until:
            try:
                self._heartbeat.keep(monotonic, self.now(), self.started_total)
                self._follow_runs(monotonic)
                self._settle_and_start(monotonic)
                self._failures = 0
            except DatabaseError as error:
                self._rest(error, monotonic)
        return not (self.draining and not self._slots.running and not self._slots.over)

    def _patience(self, monotonic: float) -> float:
        """Seconds until the next thing to do by itself."""
        slots = self._slots
        times = [self._heartbeat.next_clock, monotonic + 1.0]
        if slots.over:
            times.append(monotonic)
        if slots.running:
            times += [self._store_at, self._look_at]
        if slots.free and not self.draining and slots.ready:
            times.append(self._poll_at)
        nearest = max(min(times), self._rest_until)  # while the database is away only children are heard
        for at in (slots.next_clock(), self._drain.next_clock()):
            if at is not None:
                nearest = min(nearest, at)
        return max(0.0, nearest - monotonic)

    def _follow_runs(self, monotonic: float) -> None:
        running = self._slots.running
        if running and monotonic >= self._look_at:
            if self._look_at:  # a run of less than a second is not looked at at all
                for changed in leases.look(running):
                    if changed.lost:
                        log.warning("Lost its lease; the run is killed", extra={"execution": changed.run.execution_id})
                        self._slots.drop(changed.run)
                    else:
                        self._slots.end(changed.run, Cancelled(changed.cancelled_by), monotonic)
            self._look_at = monotonic + LOOK_SECONDS
        full = any(each.output.waiting > STORE_BYTES for each in running)
        if running and (full or monotonic >= self._store_at):
            store_output(running, self.now())
            mark_stored(running)
            self._store_at = monotonic + STORE_SECONDS

    def _settle_and_start(self, monotonic: float) -> None:
        slots, now = self._slots, self.now()
        over = list(slots.over)
        take = 0
        if not self.draining and slots.ready and (over or monotonic >= self._poll_at):
            take = slots.free
            if self.max_runs is not None:
                take = min(take, self.max_runs - self.started_total)
            if take and not over and not self.broker.ready(self.queue, now) and not self._rescue.due():
                take = 0
                self._poll_at = monotonic + self._poll_seconds
        if not over and not take:
            return
        deliveries: list[Delivery] = []
        try:
            with transaction.atomic():
                settled = [(each, self._settle(each, now)) for each in over]
                deliveries = self._rescue.take(take, now)
                if take > len(deliveries):
                    deliveries += self.broker.take(self.queue, take - len(deliveries), now)
                arrivals = [self._begin(delivery, now) for delivery in deliveries if not is_strange(delivery.message)]
                started = [arrival.delivery for arrival in arrivals if isinstance(arrival, Started)]
                # Before the commit: what cannot be launched must not count as started.
                self._briefs.load([delivery.message for delivery in started])
        except BaseException:
            self.broker.release(deliveries)
            raise
        mark_stored(over)
        del slots.over[: len(over)]
        if take and not deliveries:
            self._poll_at = monotonic + self._poll_seconds
        if started:
            self._launch(started, now)
        for arrival in arrivals:
            if isinstance(arrival, Copy):
                self._answers.copy(arrival.delivery)
        for each, result in settled:
            self._answers.settled(each, result, now)
        self._answers.adopt([each for each in deliveries if is_strange(each.message)], now)

    def _settle(self, each: Running, now: datetime) -> Settled:
        assert each.outcome is not None  # noqa: S101 - it is over
        each.unstored += each.output.finish(time.time())
        store_output([each], now)
        return settle_attempt(
            each.ended,
            each.outcome,
            each.brief.policy,
            now,
            embedded=self.broker.embedded,
            delay=lambda wanted, drawn: self.broker.delay(wanted, self.queue, drawn),
        )

    def _begin(self, delivery: Delivery, now: datetime) -> Arrival:
        return begin(delivery, container_id(), now, now + timedelta(seconds=self.conf.lease_seconds))

    def _launch(self, started: list[Delivery], now: datetime) -> None:
        monotonic = time.monotonic()
        for delivery in started:
            message, brief = delivery.message, self._briefs.get(delivery.message)
            context = {"type": message.type, "id": message.id, "scheduler_id": message.scheduler_id}
            log.info(
                "Processing task", extra={**context, "execution": message.execution_id, "attempt": message.attempt}
            )
            output = self._slots.output_for(delivery, brief)
            self._slots.launch(Running(delivery, brief, output, now, monotonic, container_id()))
            self._answers.prepare(brief.policy)
            self.started_total += 1

    def _rest(self, error: DatabaseError, monotonic: float) -> None:
        """The database is away: children go on, nothing is forgotten, and we ask again."""
        self._failures += 1
        if not isinstance(error, OperationalError | InterfaceError):
            self._give_up_on_refused(error)
        delay = min(0.25 * 2 ** min(self._failures, 5), 5.0)
        self._rest_until = monotonic + delay
        log.warning("The database did not answer; trying again in %.1f s: %s", delay, str(error).strip())
        with suppress(Exception):
            connection.close()

    def _give_up_on_refused(self, error: DatabaseError) -> None:
        """It answers, but refuses a write (a row was deleted under a run): that must not stop the others."""
        for each in list(self._slots.over):
            each.refusals += 1
            if each.refusals == REFUSALS:
                each.unstored = ""
            elif each.refusals > REFUSALS * 2:
                self._slots.over.remove(each)
                log.error("A result cannot be recorded: %s", error, extra={"execution": each.execution_id})
