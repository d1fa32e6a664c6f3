"""Runs a schedule now, and requeues failed executions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.occurrences import manual_key
from scheduling.core.targets import A_TARGET
from scheduling.execution.blocked_runs import STARTS, entered, entry_columns
from scheduling.execution.insert import execution_of, insert
from scheduling.execution.publish import initial_columns, publish
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.policies import overlap
from scheduling.processes.guard import guard


def requeue_failed(
    pk: int,
    broker: Broker,
    reason: str,
    now: datetime,
    schedule: int | None,
    params: Mapping[str, Any] | None = None,
    at: datetime | None = None,
    **seen: Any,
) -> bool:
    """Move a failed execution to claimed, or to queued if the executions table is the queue.

    The retry count starts again at zero, but the attempt number continues. The move is a compare-and-set.

    Args:
        schedule: the id of the execution's schedule. None if it has none, or if `overlap.concerned` does not name it.
        params: new params, which replace all params of the row.
        at: the earliest start. If the executions table is the queue, a consumer can take the row from this instant on.
            With RabbitMQ, a sweep publishes the row at this instant, so the caller must not publish the row.
        seen: column values that the caller has read. If one of these columns has another value now, nothing changes.

    Returns:
        Whether the row was moved. If the result is True and `at` is None, the caller must publish the execution. The
        row is not moved if its schedule runs alone and another execution of it is open (`overlap_problem` says so).
    """
    columns = initial_columns(now, broker.embedded)
    columns.setdefault("published_at", None)
    if at is not None:
        columns["wake_at"] = at
    if params is not None:
        columns["params"] = dict(params)
    columns |= {"retry_base": F("attempt"), "reason": reason, "finished_at": None, "cancel_requested_by": ""}
    columns |= {"deferred_at": None, "snoozes": 0}
    to = State(columns.pop("state"))
    with transaction.atomic():
        scheduler = overlap.locked(schedule)
        if scheduler is not None and overlap.refusal(scheduler):
            return False
        if scheduler is not None and scheduler.stay_alive:  # the schedule may have become a service since the failure
            columns["queue"] = SchedulerExecution.Queue.STANDALONE.value
        moved = bool(SchedulerExecution.objects.filter(pk=pk, **seen).move([State.FAILED], to, **columns))
        if moved and scheduler is not None:
            overlap.let_in({scheduler.pk: pk})
    return moved


def overlap_problem(pk: int) -> str:
    """Say why a failed execution cannot be requeued now: another execution of its schedule is open. Empty if it can."""
    row = _unlocked(SchedulerExecution.objects.values_list("scheduler", flat=True).filter(pk=pk).first())
    return overlap.refusal(row) if row is not None else ""


def overlap_now(schedule: int | None) -> str:
    """Say why a schedule would not start an execution now; empty if it would. This locks nothing, so it only informs.

    With the policies `wait` and `replace`, the execution would wait.
    """
    row = _unlocked(schedule)
    return overlap.enter(row).said if row is not None else ""


def _unlocked(schedule: int | None) -> Scheduler | None:
    columns = (*overlap.COLUMNS, "status", "date_time")
    return Scheduler.objects.only(*columns).filter(pk=schedule).first() if schedule is not None else None


def run_now(
    scheduler: Scheduler,
    broker: Broker,
    by: str = "",
    params: dict[str, Any] | None = None,
    key: uuid.UUID | None = None,
    instead: Mapping[str, Any] | None = None,
    again: SchedulerExecution | None = None,
    *,
    beside: bool = False,
) -> SchedulerExecution:
    """Run a schedule once, now, even if it is paused. The execution is published when the transaction commits.

    If the schedule runs alone and another execution of it is open, the new execution waits for its turn or is skipped,
    as the policy says, with this reason.

    Args:
        by: the name of the user who asked; it is recorded.
        params: params that override params of the same name, for this run only; the other params stay.
        key: the caller's idempotency key. A second call with the same key returns the row of the first call.
        instead: params that replace all params of the Scheduler, for this run only.
        beside: start the run whatever the overlap of the schedule says. The schedule still names the other execution
            as the open one. A service never runs twice.
        again: for a rerun, the execution that is run again; the execution key records its id. The new execution has its
            group, if it has one, because it also has its params.

    Raises:
        ValueError: the schedule has no target.
        Held: nothing may be started now (`processes.guard`).
    """
    if not scheduler.target_type:
        raise ValueError(f"The schedule has no target: choose {A_TARGET}.")
    guard.check(broker, may_claim=True)
    own = scheduler.params if instead is None else instead
    source, group_id = (None, None) if again is None else (again.pk, again.group_id)
    with transaction.atomic():
        alone = overlap.locked(scheduler.pk)
        now = clock.now()  # after the wait for the lock: the run is decided about now
        entry = overlap.enter(alone) if alone is not None else STARTS
        if beside and alone is not None and not alone.stay_alive and entry.behind is not None:
            alone, entry = None, STARTS
        execution = execution_of(
            scheduler, now, execution_key=manual_key(key or uuid.uuid4(), source), scheduled_at=now,
            trigger=Trigger.MANUAL.value, requested_by=by[:150], params={**own, **(params or {})},
            group_id=group_id or scheduler.group_id,
            **entry_columns(entry, scheduler.overlap if alone is None else alone.overlap, now, broker.embedded),
        )  # fmt: skip
        if not insert([execution]):
            return SchedulerExecution.objects.get(scheduler=scheduler, execution_key=execution.execution_key)
        let_in = entered(alone, execution, entry, now, embedded=broker.embedded)
        transaction.on_commit(lambda: publish(let_in, broker))
    return next((row for row in let_in if row.pk == execution.pk), execution)
