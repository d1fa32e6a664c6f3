"""Cancel an execution that waits or runs. A cancel wins over a retry."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone as clock

from scheduling.core.lifecycle import WAITING, State
from scheduling.models import SchedulerExecution


def cancel(pk: int, by: str, now: datetime | None = None) -> str:
    """Cancel one execution.

    Returns:
        `cancelled` if the execution waited; `asked` if the execution runs (its consumer will end it within seconds);
        `over` if the execution has already ended.
    """
    now = now or clock.now()
    rows = SchedulerExecution.objects.filter(pk=pk)
    # Each update is a compare-and-set. The first update matches a waiting execution, the second a running
    # execution. Between the updates, a waiting execution may start, or a running execution may wait again. So both
    # updates are tried twice.
    for _ in range(2):
        if rows.move(WAITING, State.CANCELLED, wake_at=None, finished_at=now, reason=f"Cancelled by {by}."):
            return "cancelled"
        if rows.filter(state=State.RUNNING.value).update(cancel_requested_by=by[:150]):
            return "asked"
    return "over"
