"""Answers: what the broker is told once the row is written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from django.db import DatabaseError, InterfaceError, OperationalError

from scheduling.adopt import adopt
from scheduling.broker import Broker, BrokerError, Delivery
from scheduling.consumer.running import Running
from scheduling.core.lifecycle import State
from scheduling.core.messages import FailedMessage
from scheduling.core.retry import RetryPolicy, delays
from scheduling.dispatch import mark_parked, mark_published
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.settlement import Settled, announce

log = get_logger(__name__)


class Answers:
    """Carries settled attempts to the broker; a broker that is away is only logged: sweeps mend."""

    def __init__(self, broker: Broker, queue: str) -> None:
        self.broker, self.queue = broker, queue

    def prepare(self, policy: RetryPolicy) -> None:
        """A run begins under this policy: its waits may be needed soon."""
        with suppress(BrokerError):
            self.broker.declare(delays(policy), self.queue)

    def copy(self, delivery: Delivery) -> None:
        """What it asks for was started before; it is done with."""
        log.debug("Message ignored: a copy", extra={"execution": delivery.message.execution_id})
        self.broker.acknowledge(delivery)

    def adopt(self, deliveries: Sequence[Delivery], now: datetime) -> None:
        """Messages that no row stands behind get one.

        Raises:
            django.db.DatabaseError: the database is away; these will be taken again.
        """
        for number, delivery in enumerate(deliveries):
            try:
                adopt(delivery, self.queue, self.broker, now)
            except (OperationalError, InterfaceError):
                self.broker.release(deliveries[number:])
                raise
            except DatabaseError as error:
                # The database answers and refuses this one: it must not stop those behind it.
                log.error("A message cannot be recorded and is parked in the failed queue: %s", error)
                failed = FailedMessage(delivery.message, now, f"It cannot be recorded: {error}", delivery.earlier)
                self.broker.fail(delivery, failed, failed.failed_reason)

    def settled(self, each: Running, result: Settled, now: datetime) -> None:
        """Announce the outcome, then retry, fail, give back or acknowledge the message."""
        message = each.delivery.message
        announce(
            result,
            type_=message.type,
            target_id=message.id,
            name=each.brief.handler,
            scheduler_id=message.scheduler_id,
        )
        try:
            self._answer(each, result, now)
        except (BrokerError, DatabaseError) as error:
            log.warning(
                "The broker was not answered; a sweep will publish what is missing: %s",
                error,
                extra={"execution": message.execution_id},
            )

    def _answer(self, each: Running, result: Settled, now: datetime) -> None:
        message = each.delivery.message
        if result.state is State.RETRYING and result.retry is not None:
            following = replace(message, attempt=message.attempt + 1, retry_count=result.retries + 1)
            if self.broker.retry(each.delivery, following, result.retry.delay_ms, result.error):
                self._retry_published(each.execution_id, message.attempt, now)
        elif result.state is State.FAILED:
            failed = FailedMessage(message, now, result.error, result.retries)
            if self.broker.fail(each.delivery, failed, result.error) and not self.broker.embedded:
                mark_parked(each.execution_id, message.attempt, now)
        elif result.state is State.CLAIMED:
            # Given back: the next attempt has the next number, so the old message is of no use.
            again = replace(message, attempt=message.attempt + 1)
            try:
                if message.execution_id in self.broker.publish([again], self.queue):
                    mark_published([each.execution_id], now)
            finally:
                self.broker.acknowledge(each.delivery)
        else:
            self.broker.acknowledge(each.delivery)

    def _retry_published(self, execution_id: int, attempt: int, now: datetime) -> None:
        if not self.broker.embedded:
            SchedulerExecution.objects.filter(pk=execution_id, attempt=attempt, state=State.RETRYING.value).update(
                published_at=now
            )
