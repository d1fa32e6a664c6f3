"""Answers the broker for each delivery, after the execution's row was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from django.db import DatabaseError

from scheduling.broker import Broker, BrokerError, Delivery
from scheduling.consumer.running import Running
from scheduling.consumer.start import Arrival
from scheduling.core.inbox_sentences import NOT_RECORDED, NOT_STARTED
from scheduling.core.lifecycle import State
from scheduling.core.messages import FailedMessage
from scheduling.core.outcome import Deferred, FailedProbe, Snoozed
from scheduling.core.retry import RetryPolicy, delays
from scheduling.execution.announce import announce
from scheduling.execution.foreign import adopt
from scheduling.execution.publish import mark_parked, mark_published
from scheduling.execution.settle import Settled
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.processes.database import is_away
from scheduling.processes.set_aside import fail_row

log = get_logger(__name__)


class Answers:
    """Answers the broker. If the broker cannot be reached, a later sweep publishes the missing messages.

    Args:
        unconfirmed: called with the time at which a retry is due whose message the broker did not confirm.
    """

    def __init__(self, broker: Broker, unconfirmed: Callable[[datetime], object] = lambda _due: None) -> None:
        self.broker, self._unconfirmed = broker, unconfirmed

    def prepare(self, policy: RetryPolicy, queue: str) -> None:
        """Declare the wait queues that retries of this work queue under this policy would use."""
        with suppress(BrokerError):
            self.broker.declare(delays(policy), queue)

    def not_started(self, arrival: Arrival, now: datetime) -> None:
        """Answer a message that started no attempt.

        A copy is acknowledged, and so is the message of a run that is put off: a sweep publishes it again. If the
        message does not belong to the row that it names, the message is parked in the failed queue.
        """
        context = {"execution": arrival.delivery.message.execution_id}
        if arrival.foreign:
            log.warning("A foreign message is parked in the failed queue: %s", arrival.foreign, extra=context)
            self.park_foreign(arrival.delivery, arrival.foreign, now)
        else:
            log.debug("Message ignored: %s", "put off" if arrival.deferred else "a copy", extra=context)
            self.broker.acknowledge(arrival.delivery)

    def adopt(self, deliveries: Sequence[Delivery], now: datetime) -> None:
        """Create executions for messages that this project did not publish.

        Raises:
            django.db.DatabaseError: the database cannot be reached. The remaining deliveries are given back.
        """
        for number, delivery in enumerate(deliveries):
            try:
                adopt(delivery, delivery.queue, self.broker, now)
            except Exception as error:
                if is_away(error):
                    self.broker.release(deliveries[number:])
                    raise
                # The database works but refuses this message. Park it, so that it does not block the next messages.
                log.error("A message cannot be recorded and is parked in the failed queue: %s", error)
                reason = NOT_RECORDED.format(error=f"{error!s:.1000}")
                self.park_foreign(delivery, reason, now)

    def refused(self, delivery: Delivery, error: Exception, now: datetime) -> None:
        """Handle a delivery that cannot be started. The row becomes failed, and the message is parked."""
        if delivery.message.execution_id is not None:
            fail_row(delivery.message.execution_id, error, now)
        self.park_foreign(delivery, NOT_STARTED.format(error=f"{error!s:.1000}"), now)

    def park_foreign(self, delivery: Delivery, reason: str, now: datetime) -> None:
        """Park a message in the failed queue. If the message has no row, a producer's next sync makes the row."""
        failed = FailedMessage(delivery.message, now, reason, delivery.earlier)
        self.broker.dead_letter(delivery, failed, reason, foreign=True)

    def settled(self, run: Running, result: Settled, now: datetime) -> None:
        """Announce the outcome, then answer the broker: retry, park, publish again or acknowledge the message."""
        message = run.delivery.message
        announce(result, message, run.config.handler)
        try:
            self._answer(run, result, now)
        except (BrokerError, DatabaseError) as error:
            text = "The broker was not answered; a sweep will publish what is missing: %s"
            log.warning(text, error, extra={"execution": message.execution_id})

    def _answer(self, run: Running, result: Settled, now: datetime) -> None:
        message = run.delivery.message
        if result.state is State.RETRYING and result.retry is not None:
            following = replace(message, attempt=message.attempt + 1, retry_count=result.retry.number)
            if self.broker.retry(run.delivery, following, result.retry.delay_ms, result.error):
                self._retry_published(run.execution_id, message.attempt, now)
            elif result.retry_at is not None:
                self._unconfirmed(result.retry_at)
        elif result.state is State.FAILED:
            failed = FailedMessage(message, now, result.error, result.retries)
            if self.broker.dead_letter(run.delivery, failed, result.error) and not self.broker.embedded:
                mark_parked(run.execution_id, message.attempt, now)
        elif result.state is State.CLAIMED and not isinstance(result.outcome, Deferred | Snoozed | FailedProbe):
            # The execution waits again. Its next attempt has a new number and so needs a new message.
            again = replace(message, attempt=message.attempt + 1)
            try:
                if message.execution_id in self.broker.publish([again], run.delivery.queue):
                    mark_published([run.execution_id], now)
            finally:
                self.broker.acknowledge(run.delivery)
        else:
            self.broker.acknowledge(run.delivery)

    def _retry_published(self, execution_id: int, attempt: int, now: datetime) -> None:
        if not self.broker.embedded:
            rows = SchedulerExecution.objects.filter(pk=execution_id, attempt=attempt, state=State.RETRYING.value)
            rows.update(published_at=now)
