"""Checks what an execution depends on: the broker, the producers and the consumers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

from scheduling.admin.common.broker import open_broker
from scheduling.admin.ui.text import first_line
from scheduling.broker import BrokerError
from scheduling.core.lifecycle import CLAIM_GRACE, RETRY_GRACE, WAITING, State
from scheduling.core.pauses import WorkPause
from scheduling.core.targets import handler_name
from scheduling.execution.work_pauses import pause_for
from scheduling.models import Process, SchedulerExecution

NOT_SUCCEEDED = {State.FAILED.value, State.RETRYING.value}
"""The states after a failed attempt. A person mends the code then and lets it run again."""

BROKER_SECONDS = 10.0
"""An answer of the broker is reused for this many seconds, because an open page asks every few seconds."""


_broker_said: tuple[float, str] = (0.0, "")


@dataclass(frozen=True)
class Surroundings:
    """The processes and the broker on which one execution depends. A count is None if it was not needed.

    Args:
        consumers: how many consumers serve the execution's queue.
        producers: how many producers are alive. The sweep of a producer helps executions that are stuck.
        claimant: the producer that claimed the row, if this producer has stopped or is silent.
        broker: why the broker cannot be used; empty if the broker can be used or was not checked.
        outdated: the consumer of the failed last attempt, if its files have changed since it loaded them.
        pause: the pause of its handler, its queue or the whole site, for which it waits.
    """

    consumers: int | None = None
    producers: int | None = None
    claimant: Process | None = None
    broker: str = ""
    outdated: Process | None = None
    pause: WorkPause | None = None


def surroundings_of(row: SchedulerExecution, now: datetime) -> Surroundings:
    """The surroundings of the row. Only the values that matter in the row's present state are checked."""
    stuck = is_stuck(row, now)
    unconfirmed = stuck and row.state == State.CLAIMED.value
    return Surroundings(
        consumers=len(Process.objects.serving(row.queue, now)) if row.state in WAITING else None,
        producers=Process.objects.alive(now, Process.Kind.PRODUCER).count() if stuck else None,
        claimant=_gone(row.container_id, now) if unconfirmed and not row.attempt else None,
        broker=broker_problem() if unconfirmed else "",
        outdated=_outdated(row.consumer) if row.consumer and row.state in NOT_SUCCEEDED else None,
        pause=pause_for(row.type, handler_name(row.type, row.target_name), row.queue, now)
        if row.state in WAITING
        else None,
    )


def is_stuck(row: SchedulerExecution, now: datetime) -> bool:
    """Whether the row should have left its state by now. Only a sweep of a producer can continue such an execution."""
    if row.state == State.CLAIMED.value and row.wake_at is not None:
        # A row that is planned for a later time stays claimed until that time, and is not stuck. The wake_at of such a
        # row is later than now + CLAIM_GRACE.
        return row.wake_at <= now + CLAIM_GRACE and now - row.executed_at >= CLAIM_GRACE
    if row.state == State.BLOCKED.value:
        return row.wake_at is not None and row.wake_at < now - CLAIM_GRACE
    if row.state == State.RUNNING.value:
        return row.wake_at is not None and row.wake_at < now
    return row.state == State.RETRYING.value and row.wake_at is not None and row.wake_at < now - RETRY_GRACE


def broker_problem() -> str:
    """Why the broker cannot be used now, in one line; empty if the broker can be used."""
    global _broker_said
    asked_at, said = _broker_said
    if asked_at and time.monotonic() - asked_at < BROKER_SECONDS:
        return said
    unusable = ""
    try:
        with open_broker() as broker:
            if not broker.embedded:  # with the database transport, counting would read the whole queue
                unusable = next(iter(broker.counts().problems.values()), "")
        said = first_line(unusable, 300)
    except BrokerError as error:
        said = first_line(str(error), 300)
    _broker_said = (time.monotonic(), said)
    return said


def _gone(name: str, now: datetime) -> Process | None:
    row = Process.objects.filter(container_id=name, kind=Process.Kind.PRODUCER).first()
    return None if row is None or row.is_alive(now) else row


def _outdated(name: str) -> Process | None:
    return Process.objects.filter(container_id=name, code_changed_at__isnull=False).first()
