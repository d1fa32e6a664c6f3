"""Answers: what the broker is told once the row is written."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db import DatabaseError

from scheduling.broker import Broker, BrokerError, Delivery
from scheduling.consumer.running import Running
from scheduling.core.lifecycle import State
from scheduling.core.messages import FailedMessage
from scheduling.dispatch import mark_published
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.settlement import Settled, announce

log = get_logger(__name__)


class Answers:
    """Carries settled attempts to the broker; a broker that is away is only logged: sweeps mend."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def stale(self, delivery: Delivery) -> None:
        """A copy: its attempt has been started before."""
        log.debug("Message ignored: a copy", extra={"execution": delivery.message.execution_id})
        try:
            self.broker.acknowledge(delivery)
        except BrokerError as error:
            log.warning("The broker was not answered: %s", error)

    def settled(self, each: Running, result: Settled, queue: str, now: datetime) -> None:
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
            self._answer(each, result, queue, now)
        except (BrokerError, DatabaseError) as error:
            log.warning(
                "The broker was not answered; a sweep will publish what is missing: %s",
                error,
                extra={"execution": message.execution_id},
            )

    def _answer(self, each: Running, result: Settled, queue: str, now: datetime) -> None:
        message = each.delivery.message
        following = replace(message, attempt=message.attempt + 1, retry_count=result.retries + 1)
        if result.state is State.RETRYING and result.retry is not None:
            if (
                self.broker.retry(each.delivery, following, result.retry.delay_ms, result.error)
                and not self.broker.embedded
            ):
                SchedulerExecution.objects.filter(
                    pk=each.execution_id, attempt=message.attempt, state=State.RETRYING.value
                ).update(published_at=now)
        elif result.state is State.FAILED:
            failed = FailedMessage(message, now, result.error, result.retries)
            self.broker.fail(each.delivery, failed, result.error)
        elif result.state is State.CLAIMED:
            # Given back: the next attempt has the next number, so the old message is of no use.
            again = replace(message, attempt=message.attempt + 1)
            if message.execution_id in self.broker.publish([again], queue):
                mark_published([message.execution_id], now)
            self.broker.acknowledge(each.delivery)
        else:
            self.broker.acknowledge(each.delivery)
