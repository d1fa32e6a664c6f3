"""Sets executions to failed if the broker gave up their messages, because the delivery limit of a queue was reached."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from scheduling.core.deaths import Death
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import WAITING, State
from scheduling.core.messages import TaskMessage
from scheduling.execution.announce import report_row
from scheduling.execution.death_records import record_deaths
from scheduling.inbox.parked_rows import GAVE_UP
from scheduling.models import SchedulerExecution
from scheduling.processes.set_aside import read_rows

GivenUp = tuple[TaskMessage, Sequence[Death]]
"""The content of a message that the broker gave up delivering, and its deaths."""


def give_up(messages: Sequence[GivenUp], now: datetime) -> int:
    """Set executions to failed, because the broker gave up delivering their messages. Returns how many were set."""
    count = 0
    for task, deaths in messages:
        assert task.execution_id is not None  # noqa: S101 - each of these tasks has a row
        rows = SchedulerExecution.objects.filter(pk=task.execution_id)
        with transaction.atomic():
            moved = rows.filter(attempt__gte=task.attempt - 1).move(
                WAITING, State.FAILED, wake_at=None, finished_at=now, published_at=now, reason=GAVE_UP,
                error_class="DeliveryLimit", error_message=GAVE_UP, fingerprint=fingerprint("DeliveryLimit", GAVE_UP),
            )  # fmt: skip
            if moved:
                record_deaths(task.execution_id, deaths)
        for row in read_rows(rows, now) if moved else ():
            report_row(row)
        count += moved
    return count
