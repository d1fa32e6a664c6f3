"""`Desk` is a consumer for tests. It uses the real consumer's code, but it starts no processes.

A test calls the steps itself: take a message, start its attempt, and end the attempt with an outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker import Broker, Delivery
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.running import Running
from scheduling.consumer.start import Arrival, begin
from scheduling.core.outcome import Failed, Outcome, Succeeded
from scheduling.core.retry import RetryPolicy
from scheduling.execution.foreign import is_foreign
from scheduling.execution.run_now import run_now
from scheduling.execution.settle import Settled, settle_attempt
from scheduling.handlers.run_config import RunConfig
from scheduling.models import SchedulerExecution
from tests.factories import SchedulerFactory
from tests.support import wait_for

SOON = RetryPolicy(max_retries=2, delay_ms=1000, multiplier=1.0)
NEVER = RetryPolicy(max_retries=0)
ERROR = Failed("builtins.RuntimeError", "no route to host")


class Desk:
    """A consumer of one work queue, or of several.

    Args:
        slots: the number of messages that the broker may deliver before one of them is acknowledged.
        name: the consumer's name in the execution rows.
    """

    def __init__(self, broker: Broker, *queues: str, slots: int = 1, name: str = "desk") -> None:
        self.broker, self.queues, self.name = broker, queues or ("main",), name
        self.answers, self.rescue = Answers(broker), Rescue(broker, self.queues)
        broker.declare([], *self.queues)
        broker.consume(dict.fromkeys(self.queues, slots))

    def defer(self, deliveries: Sequence[Delivery]) -> set[int]:
        """Put attempts off. Returns their executions: none, for this consumer has all code."""
        return set()

    def look(self) -> list[Arrival]:
        """Take at most one message, try to start its attempt, and return the result.

        A copy is acknowledged and does not start. A foreign message gets an execution row and is not in the result.
        """
        now = clock.now()
        with transaction.atomic():
            taken = self.rescue.take(1, now) or self.broker.take(self.queues, 1, now)
            own = [delivery for delivery in taken if not is_foreign(delivery.message)]
            arrivals = begin(own, self.name, now, now + timedelta(seconds=60), defer=self.defer)
        for arrival in arrivals:
            if not arrival.started:
                self.answers.not_started(arrival, now)
        self.answers.adopt([delivery for delivery in taken if is_foreign(delivery.message)], now)
        return arrivals

    def start(self) -> Delivery:
        """Wait until an attempt starts, and return its delivery. Copies that arrive earlier are acknowledged."""

        def started() -> Delivery | None:
            return next((arrival.delivery for arrival in self.look() if arrival.started), None)

        return wait_for(started, f"something starts from {self.queues}")

    def end(self, delivery: Delivery, outcome: Outcome | None = None, policy: RetryPolicy = SOON) -> Settled:
        """Settle the attempt of a delivery, answer the broker, and return the result of the settle."""
        outcome, now = outcome or Succeeded(), clock.now()
        config = RunConfig("tests.noop", policy=policy)
        running = Running(delivery, config, OutputBuffer(1000, None), now, self.name)
        self.answers.prepare(policy, delivery.queue)
        with transaction.atomic():
            settled = settle_attempt(
                running.ended,
                outcome,
                policy,
                now,
                embedded=self.broker.embedded,
                delay=lambda wanted, drawn: self.broker.delay(wanted, delivery.queue, drawn),
            )
        self.answers.settled(running, settled, now)
        return settled

    def run(self, outcome: Outcome | None = None, policy: RetryPolicy = SOON) -> Settled:
        """Start the next attempt, end it, and return the result of the settle."""
        return self.end(self.start(), outcome, policy)

    def starts_nothing(self) -> bool:
        """Take messages until the queue is empty. Return true, or fail if a message starts an attempt."""

        def quiet() -> bool:
            assert not any(arrival.started for arrival in self.look()), "something started"
            ready = self.broker.counts(self.queues).ready
            return not any(ready[queue] for queue in self.queues) and not self.broker.ready(self.queues, clock.now())

        return wait_for(quiet, f"{self.queues} are empty")


def failed(desk: Desk, count: int = 1) -> list[SchedulerExecution]:
    """Make `count` executions, let each fail for good, and return them."""
    schedule = SchedulerFactory(rare=True)
    rows = [run_now(schedule, desk.broker) for _ in range(count)]
    for _ in rows:
        desk.run(ERROR, NEVER)
    for row in rows:
        row.refresh_from_db()
    return rows
