"""Settles ended runs and starts new runs. Each turn of the supervisor's main loop uses one transaction for both.

If the database refuses the transaction because of one run, each run gets its own transaction. If the database then
refuses a run again, the row of this run becomes failed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import connection, transaction

from scheduling.broker import Broker, Delivery
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.batch_settle import settle_batches
from scheduling.consumer.deferral import Deferral
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.narrow import Narrow
from scheduling.consumer.output_store import store_output
from scheduling.consumer.place_gate import PlaceGate
from scheduling.consumer.running import Running
from scheduling.consumer.start import Arrival, begin
from scheduling.consumer.successors import Successors
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.messages import TaskMessage
from scheduling.core.queues import work_queues
from scheduling.execution.blocked_runs import release_after
from scheduling.execution.foreign import is_foreign
from scheduling.execution.rule_pauses import pause_failing_after
from scheduling.execution.settle import Settled, settle_attempt
from scheduling.execution.transitions import AttemptValues, record_attempts
from scheduling.handlers import handlers
from scheduling.handlers.run_config import RunConfigs
from scheduling.logs import get_logger
from scheduling.pings.rows import Ended, note_ends, note_starts
from scheduling.pings.sender import sender
from scheduling.processes.database import is_away
from scheduling.processes.guard import guard
from scheduling.processes.identity import container_id
from scheduling.processes.set_aside import fail_row

log = get_logger(__name__)

Written = tuple[list[tuple[Running, Settled]], list[Delivery], list[Arrival]]
"""The settled runs with their results, all taken deliveries, and one arrival for each delivery that has a row."""


class RowWriter:
    """Settles and starts the runs of one consumer.

    Args:
        queues: the queues from which it takes runs.
        lease_seconds: how long this consumer owns a started run without a heartbeat.
    """

    def __init__(
        self,
        broker: Broker,
        queues: Sequence[str],
        lease_seconds: int,
        configs: RunConfigs,
        answers: Answers,
        rescue: Rescue,
        successors: Successors | None = None,
    ) -> None:
        self._broker, self._queues, self._lease = broker, work_queues(queues), timedelta(seconds=lease_seconds)
        self._configs, self._answers, self._rescue = configs, answers, rescue
        self.places = PlaceGate(broker, self._queues)
        self._deferral = Deferral(configs, self.places, embedded=broker.embedded)
        self._successors = successors or Successors(broker)
        # The place of a limited run is taken in the transaction of its start.
        self._has_limits = any(handler.limit for handler in handlers())
        self._pings = 0
        """How many pings the present turn has written."""

    def write(self, over: Sequence[Running], limit: int, now: datetime, only: Narrow | None = None) -> Written:
        """Settle the runs that are over and start up to `limit` new runs.

        Args:
            only: which executions may start, for a batch that gathers; None: any.

        Raises:
            django.db.DatabaseError: the database cannot be reached. The deliveries that were taken are given back.
            Held: nothing may be settled or started (`processes.guard`). The deliveries are given back, too.
        """
        self._pings = 0
        written = self._write(over, limit, now, only)
        if self._pings:
            sender.ring()
        self._deferral.breakers.record(written[0], now)
        self.places.give_on(written[0], now)
        self._after_ends(written[0], now)
        self._successors.let_go(now)
        return written

    def _after_ends(self, settled: Sequence[tuple[Running, Settled]], now: datetime) -> None:
        """Do what follows the ends of runs: let in those that waited for them, and pause schedules that fail.

        The ends are committed. If the database fails now, a producer does it.
        """
        own = [(run, result.state) for run, result in settled if result.state is not None]
        ended = _schedules(run for run, state in own if run.config.waited_for and state not in OPEN_STATES)
        failed = _schedules(run for run, state in own if run.config.pauses_schedule and state is State.FAILED)
        if ended:
            release_after(ended, self._broker, now)
        if failed:
            pause_failing_after(failed, now)

    def _write(self, over: Sequence[Running], limit: int, now: datetime, only: Narrow | None) -> Written:
        deliveries: list[Delivery] = []
        try:
            with self._transaction(over, limit):
                if over:
                    guard.check(self._broker)
                settled = self._settle(over, now)
                # First of all, so that they are released if anything else is refused.
                deliveries += self.places.pass_on(settled, limit, now)
                deliveries += self._take(limit - len(deliveries), now, only)
                if deliveries and not over:
                    guard.check(self._broker)
                arrivals = self._begin(deliveries, now)
            return settled, deliveries, arrivals
        except BaseException as error:
            self._broker.release(deliveries)
            self.places.undone()
            self._successors.undone()
            if not isinstance(error, Exception) or is_away(error):
                raise
            log.warning("A turn is written one by one, for something in it is refused: %s", error)
        return self._write_one_by_one(over, limit, now, only)

    def _transaction(self, over: Sequence[Running], limit: int) -> AbstractContextManager[Any]:
        """A transaction; nothing if the turn writes one row at most, because one statement needs no transaction.

        With the database transport, a delivery is a locked row, and locks need a transaction.
        """
        if over or limit > 1 or self._broker.embedded or self._has_limits:
            return transaction.atomic()
        return nullcontext()

    def _write_one_by_one(self, over: Sequence[Running], limit: int, now: datetime, only: Narrow | None) -> Written:
        settled = [(run, result) for run in over if (result := self._settle_alone(run, now)) is not None]
        deliveries: list[Delivery] = []
        arrivals: list[Arrival] = []
        for _number in range(limit):
            taken, begun = self._start_alone(now, only)
            deliveries += taken
            arrivals += begun
        return settled, deliveries, arrivals

    def _settle_alone(self, run: Running, now: datetime) -> Settled | None:
        """Settle a run. If the database refuses the result with the output, settle the run without its output.

        If the database also refuses the result without the output, the execution becomes failed. Then the function
        returns None.
        """
        for keep_output in (True, False):
            if not keep_output:
                run.give_up_output()
            try:
                with transaction.atomic():
                    guard.check(self._broker)
                    ((_run, result),) = self._settle([run], now)
                    return result
            except Exception as error:
                if is_away(error):
                    raise
                refused = error
        log.error("A result cannot be recorded: %s", refused, extra={"execution": run.execution_id})
        fail_row(run.execution_id, refused, now)
        self._broker.acknowledge(run.delivery)
        return None

    def _start_alone(self, now: datetime, only: Narrow | None) -> tuple[list[Delivery], list[Arrival]]:
        deliveries: list[Delivery] = []
        try:
            with transaction.atomic():
                deliveries = self._take(1, now, only)
                if deliveries:
                    guard.check(self._broker)
                return deliveries, self._begin(deliveries, now)
        except Exception as error:
            if is_away(error) or not deliveries:
                self._broker.release(deliveries)
                raise
            self._answers.refused(deliveries[0], error, now)
        return [], []

    def _take(self, limit: int, now: datetime, only: Narrow | None) -> list[Delivery]:
        if only is not None:
            return self._broker.take([only.queue], limit, now, only)
        deliveries = self.places.take(limit, now)
        deliveries += self._rescue.take(limit - len(deliveries), now)
        if limit > len(deliveries):
            deliveries += self._broker.take(self._queues, limit - len(deliveries), now)
        return deliveries

    def _begin(self, deliveries: Sequence[Delivery], now: datetime) -> list[Arrival]:
        own = [delivery for delivery in deliveries if not is_foreign(delivery.message)]
        with ExitStack() as stack:

            def prepare(messages: list[TaskMessage]) -> None:
                self._configs.prepare(messages)
                if not connection.in_atomic_block and any(self._configs.get(message).pings for message in messages):
                    stack.enter_context(transaction.atomic())  # the ping of a start is written together with it

            defer = partial(self._deferral.defer, now=now)
            arrivals = begin(own, container_id(), now, now + self._lease, prepare, defer)
            started = [arrival.delivery.message for arrival in arrivals if arrival.started]
            told = [(message, kinds) for message in started if (kinds := self._configs.get(message).pings)]
            self._pings += note_starts(told, now)
        return arrivals

    def _settle(self, over: Sequence[Running], now: datetime) -> list[tuple[Running, Settled]]:
        """Write the outcomes. One statement writes the output of all runs, and one the rows of all attempts.

        An attempt that was fenced off is not settled, and its last output is dropped.
        """
        for run in over:
            run.unstored += run.output.finish(time.time())
        attempts: list[AttemptValues] = []
        together = settle_batches([run for run in over if run.batch is not None], now, attempts)
        settled = [(run, together.get(run) or self._settle_run(run, now, attempts)) for run in over]
        store_output([run for run, result in settled if result.state is not None], now)
        record_attempts(attempts)
        told = [
            Ended(run.execution_id, run.delivery.message.attempt, result.state, run.config.pings)
            for run, result in settled
            if run.config.pings and result.state is not None
        ]
        self._pings += note_ends(told, now)
        self._successors.note(settled, now)
        return settled

    def _settle_run(self, run: Running, now: datetime, attempts: list[AttemptValues]) -> Settled:
        assert run.outcome is not None  # noqa: S101 - the run is over

        def delay(wanted: int, drawn: bool) -> int:
            return self._broker.delay(wanted, run.delivery.queue, drawn)

        # A service may run for months. Meanwhile, its schedule may have become an ordinary one.
        service = run.config.service and self._configs.get(run.delivery.message).service
        outcome = self._deferral.outcome_of(run, now)
        return settle_attempt(
            run.ended, outcome, run.config.policy, now,
            embedded=self._broker.embedded, delay=delay, attempts=attempts,
            service=service,
        )  # fmt: skip


def _schedules(runs: Iterable[Running]) -> set[int]:
    return {pk for run in runs if (pk := run.delivery.message.scheduler_id) is not None}
