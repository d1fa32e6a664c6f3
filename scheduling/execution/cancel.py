"""Cancels an execution that waits or runs. A cancel takes precedence over a retry."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone as clock

from scheduling.core import run_sentences as say
from scheduling.core.lifecycle import CANCELLED_AT_ONCE, OPEN_STATES, State
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.policies import overlap

DELETED = say.SCHEDULE_DELETED.format()


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
        columns = {"wake_at": None, "start_by": None, "finished_at": now, "reason": say.CANCELLED_BY.format(by=by)}
        if rows.move(CANCELLED_AT_ONCE, State.CANCELLED, **columns):
            overlap.look_soon([pk], now)
            return "cancelled"
        if rows.filter(state=State.RUNNING.value).update(cancel_requested_by=by[:150]):
            return "asked"
    return "over"


def end_with_schedule(sender: Any, instance: Scheduler, **_kwargs: Any) -> None:
    """`pre_delete` receiver that ends the open run of a service.

    After the deletion, a run that a message had started could not be told from a run that never had a schedule.
    """
    if instance.stay_alive:
        rows = SchedulerExecution.objects.in_state(*OPEN_STATES).filter(scheduler=instance.pk, cancel_requested_by="")
        for pk in list(rows.values_list("pk", flat=True)):
            cancel(pk, DELETED)
