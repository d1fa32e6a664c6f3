"""Publishes hostile messages and healthy executions to RabbitMQ, and says which messages are on record."""

from __future__ import annotations

import random

import pika

from scheduling.broker import Broker
from scheduling.execution.run_now import run_now
from scheduling.models import Scheduler, SchedulerExecution, Worker
from tests.contract.server import Server
from tests.hostile.messages import Execution, Hostile, World, hostile_message

HEALTHY_EVERY = 50
"""One healthy execution is published for so many hostile messages."""

FAILED_SHARE = 0.1
"""The share of the hostile messages that go directly into the failed queue."""

HARMLESS = ("tests.noop", "tests.noop_fresh", "tests.typed")
"""The workers that hostile messages may run."""


class Stream:
    """The messages of one test.

    Args:
        schedule: the schedule of the healthy executions.
    """

    def __init__(self, server: Server, broker: Broker, schedule: Scheduler, pick: random.Random) -> None:
        self.server, self.broker, self.schedule, self.pick = server, broker, schedule, pick
        self.hostile: list[Hostile] = []
        self.healthy: list[SchedulerExecution] = []
        self.into_failed = self.refused = 0
        self.workers = list(Worker.objects.filter(name__in=HARMLESS).values_list("pk", flat=True))
        self._open_channel()

    def publish(self, amount: int) -> None:
        """Publish so many hostile messages. Messages that RabbitMQ refuses do not count."""
        number = 0
        while len(self.hostile) < amount:
            if number % HEALTHY_EVERY == 0:
                self.healthy.append(run_now(self.schedule, self.broker))
            self._send(hostile_message(self.pick, number, World(self.workers, self._known()[-20:])))
            number += 1
        self.healthy.append(run_now(self.schedule, self.broker))

    def lost(self) -> list[Hostile]:
        """Return the hostile messages that are neither on record nor copies of a healthy message."""
        keys = set(SchedulerExecution.objects.values_list("execution_key", flat=True))
        named = [message for message in self.hostile if message.keys]
        lost = [message for message in named if not message.keys & keys and not self._is_copy(message)]
        # A message without a message id gets a new id, so these messages can only be counted.
        nameless = [message for message in self.hostile if not message.keys and not self._is_copy(message)]
        unknown = keys.difference(*(message.keys for message in named), (row.execution_key for row in self.healthy))
        return lost + nameless[: max(0, len(nameless) - len(unknown))]

    def _known(self) -> list[Execution]:
        return [(row.pk, row.execution_key, row.type, row.target_id) for row in self.healthy]

    def _is_copy(self, message: Hostile) -> bool:
        return any(message.names(execution) for execution in self._known())

    def _open_channel(self) -> None:
        """Open a channel on which RabbitMQ confirms each message, so that a refusal concerns one message only."""
        self.server.reopen()
        self.server.channel.confirm_delivery()

    def _send(self, message: Hostile) -> None:
        queue, into_failed = self.server.name("main"), self.pick.random() < FAILED_SHARE
        if into_failed:
            queue = self.server.topology.failed
            message.properties.pop("expiration", None)  # RabbitMQ itself removes an expired message of this queue
        properties = pika.BasicProperties(headers=message.headers or None, **message.properties)
        try:
            self.server.channel.basic_publish("", queue, message.encoded(), properties)
        except pika.exceptions.ChannelClosedByBroker:  # for example because of an unknown delivery mode
            self.refused += 1
            self._open_channel()
        else:
            self.hostile.append(message)
            self.into_failed += into_failed
