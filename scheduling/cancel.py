"""Cancel: an operator's word against a run that waits or goes on. Cancelled wins over a retry."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone as clock

from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution

WAITING = (State.CLAIMED.value, State.QUEUED.value, State.RETRYING.value)


def cancel(pk: int, by: str, now: datetime | None = None) -> str:
    """Cancel one execution.

    Returns:
        `cancelled` when it waited; `asked` when it runs: its consumer ends it within seconds;
        `over` when there is nothing to cancel.
    """
    now = now or clock.now()
    rows = SchedulerExecution.objects.filter(pk=pk)
    # A run may start or end between two of these: each is a compare-and-set, and the order covers
    # the only move that helps it escape (waiting -> running).
    for _ in range(2):
        if rows.filter(state__in=WAITING).update(
            state=State.CANCELLED.value, wake_at=None, finished_at=now, reason=f"Cancelled by {by}."
        ):
            return "cancelled"
        if rows.filter(state=State.RUNNING.value).update(cancel_requested_by=by[:150]):
            return "asked"
    return "over"
