"""The executions that a claim inserts: one for each due occurrence, and one for each set of missed ones."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from scheduling.core import skip_reasons
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.occurrences import Plan, cron_key, date_key
from scheduling.core.overlap import Turn, turn
from scheduling.execution.after_runs import columns_at_claim
from scheduling.execution.blocked_runs import blocked_columns
from scheduling.execution.due_row import DueRow
from scheduling.execution.insert import Names, execution_of, skipped
from scheduling.execution.rule_pauses import runs_left
from scheduling.execution.start_deadlines import deadline_of, expired_columns
from scheduling.models import SchedulerExecution
from scheduling.policies import overlap


def have_expired(row: DueRow, plan: Plan, now: datetime) -> bool:
    """Whether the start deadlines of all due occurrences have passed."""
    return all(expired_columns(row, due.assigned or due.instant, now) is not None for due in plan.runs)


def counted_again(
    planned: Iterable[tuple[DueRow, Plan]], names: Names, now: datetime, held: overlap.Held
) -> list[SchedulerExecution]:
    """The occurrences that earlier skipped executions count, for the tallies. They get no rows."""
    return [
        execution_of(row, now, names, **skipped(now, skip_reasons.left_out(held.by[row.id], row.stay_alive), missed=1))
        for row, _plan in planned if row.id in held.on_record
    ]  # fmt: skip


def executions_of(
    row: DueRow, plan: Plan, names: Names, now: datetime, embedded: bool, held: overlap.Held
) -> Iterable[SchedulerExecution]:
    """The executions of one schedule, not saved yet.

    Args:
        embedded: whether the transport is the database, so that the executions are queued as they are inserted.
        held: the schedules that have an open execution.
    """
    trigger = Trigger.DATE if row.date_time is not None else Trigger.CRON

    def execution(key: str, instant: datetime, columns: dict[str, Any]) -> SchedulerExecution:
        return execution_of(row, now, names, execution_key=key, scheduled_at=instant, trigger=trigger.value, **columns)

    if not row.status:
        instant = row.first
        key = date_key(instant) if row.date_time is not None else cron_key(instant)
        yield execution(key, instant, skipped(now, skip_reasons.SWITCHED_OFF))
        return
    for missed in plan.all_missed:
        yield execution(missed.key, missed.first, skipped(now, missed.reason, missed.count))
    if row.id in held.on_record:
        return
    opened, left = held.by.get(row.id), runs_left(row)
    for due in plan.runs:
        start = due.assigned or due.instant
        columns = _columns(row, start, now, embedded, opened)
        if columns["state"] != State.SKIPPED.value:
            if left is not None and left <= 0:
                columns = skipped(now, skip_reasons.SWITCHED_OFF, missed=1)
            left = None if left is None else left - 1
        yield execution(due.key, due.instant, {**columns, "assigned_at": start} if start != due.instant else columns)


def _columns(row: DueRow, due_at: datetime, now: datetime, embedded: bool, opened: int | None) -> dict[str, Any]:
    """The columns of the occurrence that may run.

    Args:
        opened: the id of the execution of the schedule that is not over, or that waits for its turn.
    """
    if (columns := expired_columns(row, due_at, now)) is not None:
        return columns
    found = turn(row.overlap, row.stay_alive, opened is not None)
    if opened is not None and found is Turn.LEFT_OUT:
        return skipped(now, skip_reasons.left_out(opened, row.stay_alive), missed=1)
    waits = opened is not None and found is Turn.WAITS
    columns = blocked_columns(now, opened or 0, row.overlap) if waits else columns_at_claim(row, now, embedded)
    return columns if (by := deadline_of(row, due_at)) is None else columns | {"start_by": by}
