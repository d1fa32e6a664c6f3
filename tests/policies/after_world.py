"""Schedules that wait for another one, a producer and a consumer in this process, and a clock that tests move."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from scheduling.broker.database import DatabaseBroker
from scheduling.consumer import leases
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.output_store import mark_stored
from scheduling.consumer.row_writer import RowWriter
from scheduling.consumer.running import Running
from scheduling.consumer.successors import Successors
from scheduling.core.outcome import Failed, Outcome, Succeeded
from scheduling.core.queues import work_queues
from scheduling.execution.after_runs import look
from scheduling.execution.claim import claim_due
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.processes.identity import container_id
from scheduling.producer.sweeps import sweep
from tests.factories import SchedulerFactory, due
from tests.support import NOON

LEASE = 15
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LONG_AGO = NOON - timedelta(days=30)
FAILURE = Failed("builtins.ValueError", "it is down")


def schedule(**columns: Any) -> Scheduler:
    """Return a schedule that is due at each full hour, and has had its times for a month. A failure is not retried."""
    row = SchedulerFactory(**{"schedule": "0 * * * *", "params": {}, "max_retries": 0, **columns})
    Scheduler.objects.filter(pk=row.pk).update(planned_at=LONG_AGO, created_at=LONG_AGO)
    row.refresh_from_db()
    return row


def edge(**columns: Any) -> tuple[Scheduler, Scheduler]:
    """Return a schedule and one that waits for it."""
    first = schedule(description="Load data")
    return first, schedule(**{"description": "Report", "after": first, **columns})


class World:
    """One producer and one consumer. The consumer takes everything that is due; `running` has its runs."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now, self.broker = now, DatabaseBroker()
        self.running: dict[int, Running] = {}
        self.restart()

    def restart(self) -> None:
        """Kill the consumer. Its runs are lost, and what it remembers."""
        self.running.clear()
        answers, rescue = Answers(self.broker), Rescue(self.broker, work_queues(["main"]))
        successors = Successors(self.broker, lambda: self.now.timestamp())
        self.writer = RowWriter(self.broker, ["main"], LEASE, RunConfigs(), answers, rescue, successors)

    def claim(self, *rows: Scheduler) -> None:
        """Claim the occurrences of these schedules that are due now, as a producer does."""
        for row in rows:
            due(row, self.now)
        done = claim_due(self.now, embedded=True)
        look(done.blocked, self.broker, self.now)

    def start(self) -> None:
        """Start everything that waits in the queue."""
        self._write([])

    def end(self, row: SchedulerExecution, outcome: Outcome | None = None) -> None:
        """End a run of the consumer."""
        run = self.running.pop(row.pk)
        run.outcome = outcome or Succeeded()
        self._write([run])

    def sweep(self, minutes: float = 0) -> None:
        """Let time pass, then sweep. The consumer renews its leases."""
        self.now += minutes * MINUTE
        leases.renew(list(self.running.values()), self.now, LEASE)
        sweep(self.broker, self.now)

    def _write(self, over: Sequence[Running]) -> None:
        settled, _deliveries, arrivals = self.writer.write(over, 20, self.now)
        mark_stored(over)
        assert [result.state for _run, result in settled if result.state is None] == []
        for arrival in arrivals:
            if arrival.started:
                self._run(arrival.delivery)

    def _run(self, delivery: Any) -> None:
        config = RunConfigs().get(delivery.message)
        run = Running(delivery, config, OutputBuffer(1000, None), self.now, container_id())
        self.running[run.execution_id] = run


def last(row: Scheduler) -> SchedulerExecution:
    """The newest execution of a schedule."""
    return SchedulerExecution.objects.filter(scheduler=row).order_by("-pk")[0]


def words(row: Scheduler) -> str:
    """The reason of the newest execution of a schedule."""
    return last(row).reason
