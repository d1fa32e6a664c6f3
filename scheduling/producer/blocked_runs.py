"""Lets in the executions that wait for their turn, if the process that has ended the one before them has not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from scheduling.broker import Broker
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.overlap import Overlap, blocked_by, cancels_earlier, runs_alone
from scheduling.execution.blocked_runs import LOOK_AGAIN, OVERLAP_WAIT, cancel_open, let_in, replace_blocked
from scheduling.execution.cancel import DELETED, cancel
from scheduling.execution.publish import publish
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.used_queues import in_used_queues
from scheduling.policies import overlap
from scheduling.processes import left_out
from scheduling.processes.database import locking
from scheduling.processes.set_aside import handle_each

ROWS_PER_SWEEP = 500
"""Older versions of SQLite accept at most 999 parameters."""


def sweep_blocked(broker: Broker, now: datetime, limit: int = ROWS_PER_SWEEP) -> int:
    """Look at the executions that wait for their turn: let them in if it has come. Returns how many were let in."""
    used = in_used_queues(State.BLOCKED)
    if used is None:
        return 0
    waits = SchedulerExecution.objects.filter(used, OVERLAP_WAIT).overdue(State.BLOCKED, now)
    rows = left_out.executions.without(waits)
    found: dict[int, int | None] = dict(rows.values_list("pk", "scheduler")[:limit])
    still = _in_order({schedule: pk for pk, schedule in found.items() if schedule is not None})
    released: list[SchedulerExecution] = []

    def look(pk: int) -> None:
        released.extend(_look(pk, found[pk], now, broker.embedded))

    handle_each([pk for pk in found if pk not in still], look, now)
    SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk__in=still).update(wake_at=now + LOOK_AGAIN)
    publish(released, broker)
    return len(released)


def _in_order(blocked: Mapping[int, int]) -> set[int]:
    """Those of the executions that wait for an open one, as the rows of their schedules say. This locks nothing."""
    rows = Scheduler.objects.filter(pk__in=list(blocked), open_run__isnull=False).exclude(overlap=Overlap.ALLOW.value)
    named = {opened: pk for pk, opened, run in rows.values_list("pk", "open_run", "waiting_run") if run == blocked[pk]}
    opened = SchedulerExecution.objects.in_state(*OPEN_STATES).filter(pk__in=list(named))
    return {blocked[pk] for run, pk in opened.values_list("pk", "scheduler") if named[run] == pk}


def _look(pk: int, schedule: int | None, now: datetime, embedded: bool) -> list[SchedulerExecution]:
    """Look at one blocked execution. The caller is in a transaction."""
    if schedule is None:
        cancel(pk, DELETED, now)
        return []
    row = locking(Scheduler.objects.filter(pk=schedule)).only(*overlap.COLUMNS).first()
    if row is None or not SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk=pk).exists():
        return []
    # Plain SQL may have removed the name, or another one took its place and was lost in between.
    other = row.waiting_run if row.waiting_run != pk else None
    waits = SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk=other or 0, scheduler=schedule)
    if other is not None and other > pk and waits.exists():
        replace_blocked({pk: other}, now)
        return []
    if other is not None and waits.exists():
        replace_blocked({other: pk}, now)
    opened = overlap.open_runs([row]).get(row.pk) if runs_alone(row.overlap, row.stay_alive) else None
    if opened is not None and cancels_earlier(row.overlap, row.stay_alive):
        opened = cancel_open(row.pk, opened, pk, now)
    if opened is None:
        return let_in({row.pk: pk}, now, embedded)
    overlap.lets_wait({row.pk: pk})
    SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk=pk).update(
        wake_at=now + LOOK_AGAIN, reason=blocked_by(opened, row.overlap)
    )
    return []
