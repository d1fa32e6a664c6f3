"""A consumer for tests: it starts and settles attempts with the functions of the real one, and runs them itself."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.conf import get_conf
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.output_store import mark_stored
from scheduling.consumer.row_writer import RowWriter
from scheduling.consumer.run_log import announce_start
from scheduling.core.lifecycle import State
from scheduling.handlers.run_config import KEEP_SECONDS, RunConfigs
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
        self._answers = Answers(self.broker)
        lease, rescue = get_conf().lease_seconds, Rescue(self.broker, ())
        self._writer = RowWriter(self.broker, [queue], lease, self._configs, self._answers, rescue)

    def turn(self) -> list[RunOutcome] | None:
        """Run the next due execution. The run is recorded before this method returns.

        Returns:
            The run; an empty list if the execution was not started, for example because its handler is unknown. None if
            nothing was taken: other processes have locked what is due, or the database has refused it.
        """
        with committed():
            now = clock.now()
            _settled, deliveries, arrivals = self._writer.write((), 1, now)
        started = [arrival.delivery for arrival in arrivals if arrival.started]
        return [self._run(delivery, now) for delivery in started] if deliveries else None

    def _run(self, delivery: Delivery, now: datetime) -> RunOutcome:
        config = self._configs.get(delivery.message)
        message = delivery.message
        with committed():
            announce_start(message, config, now)
        run = InlineRun(delivery, config, now, InlineLedger(message.execution_id or 0, message.attempt), StoredFiles())
        with committed():
            run.call()
            ended = clock.now()
            settled, _deliveries, _arrivals = self._writer.write([run.running], 0, ended)
            mark_stored([run.running])
            for running, result in settled:
                self._answers.settled(running, result, ended)
        state = settled[0][1].state if settled else State.FAILED
        return run.outcome(str(state or ""), is_retried=state is State.RETRYING)
