"""A consumer for tests: it starts and settles attempts with the functions of the real one, and runs them itself."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.conf import get_conf
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.batch import Batch, Shared
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.narrow import Narrow
from scheduling.consumer.output_store import mark_stored
from scheduling.consumer.row_writer import RowWriter
from scheduling.consumer.run_log import announce_start
from scheduling.consumer.successors import Successors
from scheduling.core.lifecycle import State
from scheduling.handlers.run_config import KEEP_SECONDS, RunConfig, RunConfigs
from scheduling.testing.attached import StoredFiles
from scheduling.testing.changes import Changes
from scheduling.testing.inline_run import InlineLedger, InlineRun
from scheduling.testing.outcome import RunOutcome
from scheduling.testing.transactions import committed


class InlineConsumer:
    """Runs the due executions of one queue, one after the other.

    Rows of schedules and targets are remembered until one of them may have changed.
    """

    def __init__(self, queue: str, changes: Changes) -> None:
        self.broker = DatabaseBroker()
        # For what it remembers, a change is as good as the end of the time for which it remembers rows.
        self._configs = RunConfigs(lambda: changes.rows * KEEP_SECONDS, queues=[queue])
        successors = Successors(self.broker, lambda: changes.rows * KEEP_SECONDS)
        self._answers = Answers(self.broker)
        lease, rescue = get_conf().lease_seconds, Rescue(self.broker, ())
        self._writer = RowWriter(self.broker, [queue], lease, self._configs, self._answers, rescue, successors)

    def turn(self) -> list[RunOutcome] | None:
        """Run the next due execution; of a batch handler, all that fit into one call. They are recorded at the end.

        Returns:
            The runs; an empty list if the execution was not started, for example because its handler is unknown. None
            if nothing was taken: other processes have locked what is due, or the database has refused it.
        """
        with committed():
            now = clock.now()
            _settled, deliveries, arrivals = self._writer.write((), 1, now)
        started = [arrival.delivery for arrival in arrivals if arrival.started]
        return [outcome for delivery in started for outcome in self._run(delivery, now)] if deliveries else None

    def _run(self, delivery: Delivery, now: datetime) -> list[RunOutcome]:
        config, message = self._configs.get(delivery.message), delivery.message
        deliveries = [delivery, *self._companions(delivery, config, now)]
        with committed():
            for one in deliveries:
                announce_start(one.message, config, now)
        ledger = InlineLedger(message.execution_id or 0, message.attempt)
        run = InlineRun(deliveries, config, now, ledger, StoredFiles())
        with committed():
            run.call()
            ended = clock.now()
            settled, _deliveries, _arrivals = self._writer.write(run.runs, 0, ended)
            mark_stored(run.runs)
            for running, result in settled:
                self._answers.settled(running, result, ended)
        states = {running: result.state for running, result in settled}
        found = [states.get(running, State.FAILED) for running in run.runs]
        return [
            run.outcome(number, str(state or ""), is_retried=state is State.RETRYING)
            for number, state in enumerate(found)
        ]

    def _companions(self, delivery: Delivery, config: RunConfig, now: datetime) -> list[Delivery]:
        """Start the due executions that are called together with this one."""
        if config.batch is None:
            return []
        batch = Batch(Shared.of(delivery.message, config, delivery.queue), config.batch, until=0.0)
        with committed():
            narrow = Narrow(batch, self._configs)
            _settled, _deliveries, arrivals = self._writer.write((), config.batch.size - 1, now, narrow)
        return [arrival.delivery for arrival in arrivals if arrival.started]
