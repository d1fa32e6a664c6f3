"""Desk: a consumer worked by hand, step by step, with the supervisor's own parts and no processes."""

from __future__ import annotations

import time
from datetime import timedelta

from django.db import transaction
from django.utils import timezone as clock

from scheduling.adopt import is_strange
from scheduling.brief import Brief
from scheduling.broker import Broker, Delivery
from scheduling.consumer.answers import Answers
from scheduling.consumer.arrivals import Arrival, Copy, Started, begin
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.rescue import Rescue
from scheduling.consumer.running import Running
from scheduling.core.outcome import Failed, Outcome, Succeeded
from scheduling.core.retry import RetryPolicy
from scheduling.settlement import Settled, settle_attempt
from tests.support import wait_for

SOON = RetryPolicy(max_retries=2, delay_ms=1000, multiplier=1.0)
ERROR = Failed("builtins.RuntimeError", "no route to host")


class Desk:
    """Takes one after the other from one queue; `slots` is how many may be brought ahead."""

    def __init__(self, broker: Broker, queue: str = "main", slots: int = 1, name: str = "desk") -> None:
        self.broker, self.queue, self.name = broker, queue, name
        self.answers, self.rescue = Answers(broker, queue), Rescue(broker, queue)
        broker.declare([], queue)
        broker.consume(queue, slots)

    def look(self) -> list[Arrival]:
        """One turn of the supervisor: take what is there, start it, answer what is not started."""
        now = clock.now()
        with transaction.atomic():
            taken = self.rescue.take(1, now) or self.broker.take(self.queue, 1, now)
            arrivals = [
                begin(each, self.name, now, now + timedelta(seconds=60))
                for each in taken
                if not is_strange(each.message)
            ]
        for arrival in arrivals:
            if isinstance(arrival, Copy):
                self.answers.copy(arrival.delivery)
        self.answers.adopt([each for each in taken if is_strange(each.message)], now)
        return arrivals

    def start(self) -> Delivery:
        """The next run that starts; copies on the way are answered."""

        def started() -> Delivery | None:
            return next((each.delivery for each in self.look() if isinstance(each, Started)), None)

        return wait_for(started, f"something starts from {self.queue}")

    def end(self, delivery: Delivery, outcome: Outcome | None = None, policy: RetryPolicy = SOON) -> Settled:
        """Settle a run and answer the broker, as the supervisor does."""
        outcome, now = outcome or Succeeded(), clock.now()
        brief = Brief("tests.noop", policy=policy)
        each = Running(delivery, brief, OutputBuffer(1000, None), now, time.monotonic(), self.name)
        self.answers.prepare(policy)
        with transaction.atomic():
            settled = settle_attempt(
                each.ended,
                outcome,
                policy,
                now,
                embedded=self.broker.embedded,
                delay=lambda wanted, drawn: self.broker.delay(wanted, self.queue, drawn),
            )
        self.answers.settled(each, settled, now)
        return settled

    def run(self, outcome: Outcome | None = None, policy: RetryPolicy = SOON) -> Settled:
        """Start and end the next run."""
        return self.end(self.start(), outcome, policy)

    def starts_nothing(self) -> bool:
        """Whether all that waits for it is copies, once the broker says that nothing waits any more."""

        def quiet() -> bool:
            assert not any(isinstance(each, Started) for each in self.look()), "something started"
            return self.broker.counts().ready[self.queue] == 0 and not self.broker.ready(self.queue, clock.now())

        return wait_for(quiet, f"{self.queue} is empty")
