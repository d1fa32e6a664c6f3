"""The supervisor is the main loop of `run_worker`. It uses one thread and one selector.

One pass of the loop is called a turn. In each turn, the supervisor first reads what the children have sent and ends the
runs that exceed their time limit. Then it settles ended runs and starts new runs, in one transaction. After this
transaction, it answers the broker.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from django.db import DatabaseError

from scheduling.broker import Broker, BrokerError, Delivery
from scheduling.conf import Conf
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.batch import Batch
from scheduling.consumer.batch_calls import launch_batches, next_call
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.follower import Follower
from scheduling.consumer.keepalive import KeepAlive
from scheduling.consumer.narrow import Narrow
from scheduling.consumer.output_store import mark_stored
from scheduling.consumer.row_writer import RowWriter
from scheduling.consumer.run_log import announce_start
from scheduling.consumer.running import Running
from scheduling.consumer.shutdown import Drain
from scheduling.consumer.slots import Slots
from scheduling.core.chosen import EVERYTHING, Chosen
from scheduling.core.deployment import Held
from scheduling.core.queues import MAIN, queue_of, work_queues
from scheduling.execution.foreign import is_foreign
from scheduling.handlers.registry import handler_modules
from scheduling.handlers.run_config import RunConfigs
from scheduling.logs import get_logger
from scheduling.processes import heartbeat
from scheduling.processes.database_access import DatabaseAccess
from scheduling.processes.figures import figures
from scheduling.processes.identity import container_id
from scheduling.processes.loaded_code import LoadedCode
from scheduling.processes.renewal import Renewal
from scheduling.processes.server_clock import ServerClock
from scheduling.processes.shutdown import ShutdownRequest

log = get_logger(__name__)

POLL_SECONDS = 0.1
"""The seconds between two polls of a transport that does not announce its messages. Without a free slot, there are no
polls."""

ANNOUNCED_POLL_SECONDS = 1.0
"""The seconds between two polls of a transport that announces its messages. A poll finds messages whose announcement
was lost."""

MOST_GIVEN_TURNS = 3
"""How often a turn is followed by another one for runs that were given a place."""


class Supervisor:
    """Takes deliveries, runs them in children, and records the outcomes.

    Args:
        broker: the transport. The supervisor closes it.
        concurrency: the maximum number of runs at once.
        queues: the queues from which it takes runs.
        chosen: the handlers that it runs.
        prefetch: how many messages of a queue the broker brings at once; at least one for each slot.
        max_runs: after this many runs, the supervisor stops (for tests and benchmarks); None means no limit.
        follow_code: whether the supervisor stops when a file of its code has changed, so that a new process loads it.
    """

    def __init__(
        self,
        broker: Broker,
        conf: Conf,
        stop: ShutdownRequest,
        *,
        concurrency: int = 1,
        queues: Sequence[str] = (MAIN,),
        chosen: Chosen = EVERYTHING,
        prefetch: Mapping[str, int] | None = None,
        max_runs: int | None = None,
        follow_code: bool = False,
        clock: ServerClock | None = None,
    ) -> None:
        self.broker, self.conf, self.stop = broker, conf, stop
        self.queues, self.max_runs, self._clock = tuple(queues), max_runs, clock or ServerClock()
        self._work_queues = work_queues(self.queues)
        self.now = self._clock.now
        self.started_total = 0
        self._last_start: datetime | None = None
        self._configs = RunConfigs(queues=self.queues, chosen=chosen)
        self._rescue = Rescue(broker, self._work_queues)
        self._answers = Answers(broker, self._rescue.expect)
        self._writer = RowWriter(broker, self.queues, conf.lease_seconds, self._configs, self._answers, self._rescue)
        self._selector = selectors.DefaultSelector()
        self._slots = slots = Slots(concurrency, self._selector, conf.output_max_bytes)
        self._follower = Follower(slots, self.now)
        self._poll_at = self._back_off_until = 0.0
        self._access = DatabaseAccess(conf.lease_seconds)
        self._ahead = {work: (prefetch or {}).get(queue_of(work), concurrency) for work in self._work_queues}
        self._subscribed = False
        self._poll_seconds = POLL_SECONDS
        # Made before the forkserver starts. So a file that changes while the forkserver loads it counts as changed.
        self._code = LoadedCode(handler_modules())
        self.renewal = Renewal(self._code, stop) if follow_code else None
        self._keepalive = KeepAlive(
            broker, slots, conf.lease_seconds, queues, self._clock, self._code, self._rescue, chosen
        )
        self._drain = Drain(stop, self._slots, conf.grace_seconds)

    def run(self) -> None:
        """Work until this process is asked to stop or `max_runs` is reached. Return when every run is settled."""
        self._slots.pool.start()
        self._selector.register(self.stop, selectors.EVENT_READ, self.stop.clear)
        try:
            while self._turn():
                pass
        finally:
            self._slots.pool.stop()
            with suppress(BrokerError):
                self.broker.close()
            with suppress(DatabaseError):
                heartbeat.leave(self.now(), self._code)
            self._selector.close()
        self.stop.clear()  # a signal that came during the last turn is logged, too
        log.info("Shutdown complete", extra={"consumer": container_id()})

    @property
    def draining(self) -> bool:
        """Whether this consumer has stopped taking new messages."""
        return self.stop.asked > 0 or (self.max_runs is not None and self.started_total >= self.max_runs)

    @property
    def _may_start(self) -> bool:
        return not self.draining and self._clock.trusted and not self._keepalive.holds

    def _subscribe(self) -> None:
        """Take messages while runs may start.

        Without the option --prefetch, at most one message of each work queue for each slot. More would wait here beside
        an idle consumer.
        """
        if self._may_start != self._subscribed:
            self._subscribed = self._may_start
            self.broker.consume(self._ahead if self._subscribed else dict.fromkeys(self._work_queues, 0))
            self._listen()

    def _listen(self) -> None:
        """Wake up when messages arrive. The descriptor exists as soon as the queue is consumed."""
        if self._poll_seconds == POLL_SECONDS and (descriptor := self.broker.fileno()) is not None:
            self._selector.register(descriptor, selectors.EVENT_READ, self._on_broker_ready)
            self._poll_seconds = ANNOUNCED_POLL_SECONDS

    def _on_broker_ready(self) -> None:
        if self.broker.ready(self._work_queues, self.now()):  # `ready` also resets the descriptor
            self._poll_at = self._slots.gathering.look_at = 0.0

    def _turn(self) -> bool:
        for key, _ in self._selector.select(self._select_timeout(time.monotonic())):
            key.data()
        monotonic = time.monotonic()
        figures.turns += 1
        figures.slots, figures.busy, figures.held = self._slots.count, self._slots.busy, self._keepalive.holds
        if self.renewal:
            self.renewal.apply(monotonic)
        launch_batches(self._slots, monotonic, self.draining)
        self._drain.apply(monotonic)
        self._subscribe()
        self._slots.maintain(monotonic, self.draining)
        if monotonic >= self._back_off_until:
            try:
                self._keepalive.keep(monotonic, self.started_total, self._last_start, draining=self.draining)
                if not self._keepalive.holds:
                    self._follower.follow(monotonic)
                    self._settle_and_start(monotonic)
                self._access.succeeded()
            except Held:
                self._keepalive.look_again()
                self._back_off_until = monotonic + ANNOUNCED_POLL_SECONDS
            except Exception as error:  # an error must not end the consumer
                self._back_off(error)
        recorded = self._keepalive.holds or not self._slots.over  # while it holds, nothing can be recorded
        return not (self.draining and not self._slots.busy and recorded)

    def _select_timeout(self, monotonic: float) -> float:
        """How many seconds the next turn may wait for events."""
        slots = self._slots
        times = [self._keepalive.next_clock, monotonic + 1.0]
        if slots.over and not self._keepalive.holds:
            times.append(monotonic)
        if slots.busy and not self._keepalive.holds:
            times.append(self._follower.next_clock)
        if slots.free and self._may_start and slots.pool.ready:
            times.append(self._poll_at)
        if (call := next_call(slots, takes=self._may_start)) is not None:
            times.append(call)
        nearest = max(min(times), self._back_off_until)  # during a back-off, only the children are served
        for at in (slots.next_clock(), self._drain.next_clock()):
            if at is not None:
                nearest = min(nearest, at)
        return max(0.0, nearest - monotonic)

    def _settle_and_start(self, monotonic: float) -> None:
        self._write_rows(monotonic)
        places = self._writer.places
        for _ in range(MOST_GIVEN_TURNS):
            if places.given:
                self._write_rows(monotonic, given=True)
        if places.given:
            places.offer(self.now())
        self._fill_batches(monotonic)

    def _fill_batches(self, monotonic: float) -> None:
        """Take further runs for the batches that gather. They need no slots of their own."""
        gathering = self._slots.gathering
        if not gathering or not self._may_start:
            return
        found = gathering.hungry(monotonic)
        if found:
            gathering.look_at = monotonic + self._poll_seconds
        for batch in found:
            if self.broker.ready([batch.shared.queue], self.now()):
                self._poll_at = 0.0  # the look has reset the descriptor, and other runs may have come, too
                self._write_rows(monotonic, only=batch)
        launch_batches(self._slots, time.monotonic(), self.draining)

    def _write_rows(self, monotonic: float, *, given: bool = False, only: Batch | None = None) -> None:
        """Settle the runs that are over and start new ones.

        Args:
            given: whether runs were given a place in this moment.
            only: if given, start runs of this batch only.
        """
        now, over = self.now(), list(self._slots.over)
        limit = self._take_limit(monotonic, now, given=given) if only is None else self._at_most(only.room)
        if not over and not limit:
            return
        settled, deliveries, arrivals = self._writer.write(
            over, limit, now, Narrow(only, self._configs) if only else None
        )
        mark_stored(over)
        self._slots.release(over, recorded=[run for run, result in settled if result.state is not None])
        if limit and not deliveries and only is None:
            self._poll_at = monotonic + self._poll_seconds
        for arrival in arrivals:
            if arrival.started:
                self._launch(arrival.delivery, now)
        for arrival in arrivals:
            if not arrival.started:
                self._answers.not_started(arrival, now)
        for run, result in settled:
            self._answers.settled(run, result, now)
        self._answers.adopt([delivery for delivery in deliveries if is_foreign(delivery.message)], now)

    def _take_limit(self, monotonic: float, now: datetime, *, given: bool) -> int:
        """How many deliveries to take in this turn; 0 if no delivery waits or if the next poll is not due yet."""
        slots, asked = self._slots, given or bool(self._slots.over)
        if not self._may_start or not slots.pool.ready or not (asked or monotonic >= self._poll_at):
            return 0
        limit = self._at_most(slots.free)
        if limit and not asked and not self.broker.ready(self._work_queues, now) and not self._rescue.due(now):
            self._poll_at = monotonic + self._poll_seconds
            return 0
        return limit

    def _at_most(self, number: int) -> int:
        """So many runs may start, of the given number."""
        return number if self.max_runs is None else min(number, self.max_runs - self.started_total)

    def _launch(self, delivery: Delivery, now: datetime) -> None:
        message, config = delivery.message, self._configs.get(delivery.message)
        announce_start(message, config, now)
        output = self._slots.output_for(delivery, config)
        run = Running(delivery, config, output, now, container_id())
        if config.batch is not None:
            self._slots.gathering.add(run, config.batch, time.monotonic())
        else:
            self._slots.launch(run)
        self._answers.prepare(config.policy, delivery.queue)
        self.started_total += 1
        figures.starts += 1
        self._last_start = now

    def _back_off(self, error: Exception) -> None:
        """Delay the next query. Meanwhile, children continue, and their results wait until the database answers."""
        self._back_off_until = time.monotonic() + self._access.failed(error)
        self._keepalive.next_clock = 0.0  # first of all, the leases are renewed
