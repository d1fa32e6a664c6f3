"""Cancels an execution that waits or runs. A cancel takes precedence over a retry."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone as clock

from scheduling.core.lifecycle import WAITING, State
from scheduling.models import SchedulerExecution


def cancel(pk: int, by: str, now: datetime | None = None) -> str:
    """Cancel one execution.

    Returns:
        `cancelled` if the execution waited; `asked` if the execution runs, and its consumer will end it within seconds;
        `over` if the execution has already ended.
    """
    now = now or clock.now()
    rows = SchedulerExecution.objects.filter(pk=pk)
    # The first update changes only a waiting execution, and the second update changes only a running execution. Between
    # the updates, the execution may start or may wait again. So both updates are tried twice.
    for _ in range(2):
        if rows.move(WAITING, State.CANCELLED, wake_at=None, finished_at=now, reason=f"Cancelled by {by}."):
            return "cancelled"
        if rows.filter(state=State.RUNNING.value).update(cancel_requested_by=by[:150]):
            return "asked"
    return "over"
