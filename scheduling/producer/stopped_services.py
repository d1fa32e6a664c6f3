"""Ends the services whose schedule was paused or deleted, whatever has paused or deleted it."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Q

from scheduling.core.lifecycle import OPEN_STATES, Trigger
from scheduling.execution.cancel import cancel
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.processes import left_out
from scheduling.processes.set_aside import handle_each

log = get_logger(__name__)

ROWS_PER_SWEEP = 200

PAUSED = Q(scheduler__stay_alive=True, scheduler__status=False, scheduler__date_time=None)
"""The runs of services that are paused. A service with a date is paused after its only occurrence, and runs on."""

DELETED = Q(scheduler=None) & ~Q(trigger__in=[Trigger.MESSAGE.value, Trigger.CODE.value])
"""The runs of services that are deleted. Messages of other clients and runs of code may have no schedule."""


@cache
def _statement(_vendor: str) -> tuple[str, tuple[Any, ...]]:
    """The statement and its values. They are made once, because each producer asks every two seconds."""
    rows = SchedulerExecution.objects.in_state(*OPEN_STATES).filter(
        PAUSED | DELETED, queue=SchedulerExecution.Queue.STANDALONE.value, cancel_requested_by=""
    )
    sql, values = rows.order_by().values_list("pk", "scheduler", "scheduler__paused_by").query.sql_with_params()
    return f"{sql} LIMIT %s", values


def end_stopped_services(now: datetime) -> int:
    """Cancel the open runs of services that are paused or deleted. Returns how many were cancelled.

    Only the standalone queue has such runs, so the index (state, queue, wake_at) finds them.
    """
    aside = left_out.executions.keys()
    sql, values = _statement(connection.vendor)
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, ROWS_PER_SWEEP + len(aside)])
        facts = {pk: (scheduler, paused_by) for pk, scheduler, paused_by in cursor.fetchall() if pk not in aside}

    def end(pk: int) -> None:
        scheduler, paused_by = facts[pk]
        deed = "paused" if scheduler is not None else "deleted"
        cancel(
            pk, f"{paused_by}, who has {deed} the schedule" if paused_by else f"the software: its schedule is {deed}"
        )
        log.info("A service is ended, because its schedule is %s", deed, extra={"execution": pk})

    return handle_each(facts, end, now)
