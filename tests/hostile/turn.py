"""One turn of a producer and of a consumer, in this process, on the database transport."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer import framing, leases
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.output_store import mark_stored, store_each
from scheduling.consumer.row_writer import RowWriter
from scheduling.consumer.running import Running
from scheduling.consumer.start import Arrival
from scheduling.core.outcome import Failed, Succeeded
from scheduling.handlers.run_config import RunConfigs
from scheduling.handlers.targets import sync_targets
from scheduling.models import Process
from scheduling.pings.rows import note_other_ends
from scheduling.pings.sender import Sender
from scheduling.processes import heartbeat
from scheduling.processes.database_access import DatabaseAccess
from scheduling.processes.identity import container_id
from scheduling.processes.shutdown import ShutdownRequest
from scheduling.producer.loop import Producer

SLOTS = 8
LEASE_SECONDS = 60


def produce(now: datetime) -> None:
    """Do what a producer does at its start and in its first turn: everything is due then."""
    sync_targets()
    heartbeat.arrive(Process.Kind.PRODUCER, now)
    with ShutdownRequest() as stop:
        producer = Producer(DatabaseBroker(), stop)
        # On a server, a new producer would wait for the length of a lease before it recovers one.
        producer._access = DatabaseAccess(LEASE_SECONDS, server=False)
        producer.turn()
    tell(now)


def tell(now: datetime) -> None:
    """Tell the monitors what is to be told. No schedule here has one, so each ping ends with its reason."""
    note_other_ends(now)
    sender = Sender()
    while sender.send_due(now):
        pass


class Consumer:
    """Takes, starts and settles executions like the supervisor, but each run ends at once.

    Args:
        healthy: the keys of executions that succeed. All other runs fail.
    """

    def __init__(self, healthy: set[str]) -> None:
        broker, self.configs = DatabaseBroker(), RunConfigs()
        answers = Answers(broker)
        self.answers, self.healthy = answers, healthy
        self.writer = RowWriter(broker, ["main"], LEASE_SECONDS, self.configs, answers, Rescue(broker, ["main"]))
        self.over: Sequence[Running] = []

    def turn(self, now: datetime) -> int:
        """Settle the runs of the previous turn and start new ones. Return how many runs were settled or started."""
        settled, _deliveries, arrivals = self.writer.write(self.over, SLOTS, now)
        count = len(self.over) + len(arrivals)
        mark_stored(self.over)
        for run, result in settled:
            self.answers.settled(run, result, now)
        runs = [self._run(arrival, now) for arrival in arrivals if arrival.started]
        leases.renew(runs, now, LEASE_SECONDS)
        leases.look(runs)
        store_each(runs, now)
        for run in runs:
            healthy = run.delivery.message.execution_key in self.healthy or run.delivery.message.trigger == "cron"
            run.outcome = Succeeded() if healthy else Failed("builtins.ValueError", "it fails")
        self.over = runs
        return count

    def _run(self, arrival: Arrival, now: datetime) -> Running:
        config = self.configs.get(arrival.delivery.message)
        run = Running(arrival.delivery, config, OutputBuffer(1000, None), now, container_id())
        framing.pack(run.task())  # the supervisor sends this to the child
        run.output.feed(b"a line\n", time.time())
        run.progress = "1 of 2"
        return run


def turns(now: datetime, healthy: set[str]) -> None:
    """Let a producer and a consumer work until nothing more happens.

    Raises:
        AssertionError: they do not come to rest.
    """
    consumer = Consumer(healthy)
    produce(now)
    for number in range(60):
        if not consumer.turn(clock.now()) and number > 1:
            return
        if number == 1:
            produce(now)
    raise AssertionError("the consumer comes to no rest")
