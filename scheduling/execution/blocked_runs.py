"""Executions that wait until another execution of their schedule is over (the policies `wait` and `replace`).

At most one execution of a schedule waits: the newest. It is blocked, so that nothing can start it. The transaction that
lets it in locks the schedule, as each way to a new execution does (`policies.overlap`), and finds no other execution
open. The process that has ended the other one does so at once. A sweep does it if that process has died, so no wait is
lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q

from scheduling.broker import Broker
from scheduling.core.lifecycle import LET_IN, OCCURRENCES, State
from scheduling.core.overlap import Turn, blocked_by, cancels_earlier, replaced_by
from scheduling.core.skip_reasons import newer
from scheduling.execution.after_runs import columns_at_claim
from scheduling.execution.cancel import cancel
from scheduling.execution.insert import note_skipped, skipped
from scheduling.execution.publish import initial_columns, publish
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.policies import overlap
from scheduling.policies.overlap import Alone, Entry
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.database import locking

log = get_logger(__name__)

LOOK_AGAIN = timedelta(seconds=5)
"""A sweep looks at an execution that waits for its turn so much later again."""

OVERLAP_WAIT = Q(waits_for__isnull=True)
"""Blocked executions that wait for their turn. The others wait for a predecessor (`execution.after_runs`)."""


def blocked_columns(now: datetime, behind: int, policy: str) -> dict[str, Any]:
    """The columns of a new execution that waits for its turn.

    Args:
        behind: the id of the execution that is open.
        policy: the overlap of the schedule.
    """
    return {"state": State.BLOCKED.value, "wake_at": now + LOOK_AGAIN, "reason": blocked_by(behind, policy)}


STARTS = Entry(Turn.STARTS)
"""The entry of an execution whose schedule may overlap."""


def entry_columns(entry: Entry, policy: str, now: datetime, embedded: bool) -> dict[str, Any]:
    """The columns of a new execution that is not an occurrence: it starts, waits for its turn, or is left out.

    Args:
        policy: the overlap of the schedule.
        embedded: whether the executions table is the queue.
    """
    if entry.turn is Turn.LEFT_OUT:
        return skipped(now, entry.said)
    if entry.turn is Turn.WAITS and entry.behind is not None:
        return blocked_columns(now, entry.behind, policy)
    return initial_columns(now, embedded)


def entered(
    row: Scheduler | None, execution: SchedulerExecution, entry: Entry, now: datetime, *, embedded: bool
) -> list[SchedulerExecution]:
    """Record what became of a new execution that is not an occurrence.

    Args:
        row: the schedule, if it runs alone. Its row is locked.

    Returns:
        The executions that were let in, which the caller publishes after the commit.
    """
    if entry.turn is Turn.LEFT_OUT:
        return []
    if row is None or entry.turn is Turn.STARTS:
        if row is not None:
            overlap.let_in({row.pk: execution.pk})
        return [execution]
    return arrange([row], [execution], now, embedded=embedded)


def arrange(
    rows: Iterable[Alone], inserted: Iterable[SchedulerExecution], now: datetime, *, embedded: bool
) -> list[SchedulerExecution]:
    """Let new blocked executions wait for their turn: they take the place of those that wait already.

    With `replace`, the execution that is open is cancelled. If no process works on it, the new one is let in at once.
    The rows of the schedules are locked. Call this function in the transaction that has inserted the executions.

    Args:
        embedded: whether the executions table is the queue.

    Returns:
        The executions that were let in, which the caller publishes after the commit.
    """
    made = {row.scheduler_id: row for row in inserted if row.state == State.BLOCKED.value and row.waits_for is None}
    if not made:
        return []
    own = {row.id: row for row in rows if row.id in made}
    opened, waiting = overlap.open_runs(own.values()), overlap.blocked_runs(own.values())
    free: dict[int, int] = {}
    waits: dict[int, int] = {}
    replaced: dict[int, int] = {}
    for pk, row in own.items():
        new, before = made[pk].pk, waiting.get(pk)
        if cancels_earlier(row.overlap, row.stay_alive):
            behind = cancel_open(pk, opened.get(pk), new, now)
        elif pk in opened or before is None:
            behind = opened.get(pk)
        else:  # the one that waits has its turn, and no process has let it in yet
            free[pk], behind, before = before, before, None
        if before is not None:
            replaced[before] = new
        if behind is None:
            free[pk] = new
        else:
            waits[pk] = new
    released = let_in(free, now, embedded)
    overlap.lets_wait(waits)
    replace_blocked(replaced, now)
    return released


def cancel_open(schedule: int, opened: int | None, new: int, now: datetime) -> int | None:
    """Cancel the open executions of a schedule. Returns the id of one that a process has to end; None if none is left.

    Several are open if the schedule could overlap until lately.
    """
    while opened is not None:
        if cancel(opened, replaced_by(new), now) != "cancelled":
            return opened
        others = SchedulerExecution.objects.in_state(*LET_IN).filter(scheduler=schedule)
        opened = others.order_by("pk").values_list("pk", flat=True).first()
    return None


def let_in(executions: Mapping[int, int], now: datetime, embedded: bool) -> list[SchedulerExecution]:
    """Let blocked executions in. The rows of the schedules are locked.

    Args:
        executions: maps the id of each schedule to the id of its execution.
    """
    if not executions:
        return []
    rows = SchedulerExecution.objects.in_state(State.BLOCKED).filter(OVERLAP_WAIT, pk__in=list(executions.values()))
    # Locked in the order of the primary key, as every process does.
    found = {row.pk: row for row in locking(rows.order_by("pk"))}
    overlap.let_in({schedule: pk for schedule, pk in executions.items() if pk in found})
    for pk in _after_first(found, now, embedded):
        del found[pk]
    columns = initial_columns(now, embedded)
    to = State(columns.pop("state"))
    SchedulerExecution.objects.filter(pk__in=list(found)).move([State.BLOCKED], to, reason="", **columns)
    for row in found.values():
        row.state, row.reason = to.value, ""
        row.wake_at, row.published_at = columns["wake_at"], columns.get("published_at")
    return list(found.values())


def _after_first(rows: Mapping[int, SchedulerExecution], now: datetime, embedded: bool) -> list[int]:
    """Let occurrences whose schedule has a predecessor wait for it, now that they have their turn.

    Returns:
        Their ids.
    """
    own = {pk: row.scheduler_id for pk, row in rows.items() if row.trigger in OCCURRENCES}
    schedules = Scheduler.objects.filter(pk__in=set(own.values()), after__isnull=False).only("after")
    found = {row.pk: row for row in schedules} if own else {}
    waits = {pk: found[schedule] for pk, schedule in own.items() if schedule in found}
    for pk, schedule in waits.items():
        columns = columns_at_claim(schedule, now, embedded)
        SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk=pk).update(**columns)
    return list(waits)


def replace_blocked(replaced: Mapping[int, int], now: datetime) -> None:
    """End blocked executions, because newer ones take their places.

    Args:
        replaced: maps the id of each execution to the id of the newer one.
    """
    if not replaced:
        return
    rows = SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk__in=list(replaced)).order_by("pk")
    skipped = []
    for row in locking(rows):
        # An occurrence counts itself, as one that is left out at its claim.
        row.state, row.reason = State.SKIPPED.value, newer(replaced[row.pk])
        row.missed = 1 if row.trigger in OCCURRENCES else 0
        end_blocked(row.pk, State.SKIPPED, now, reason=row.reason, missed=row.missed)
        skipped.append(row)
    note_skipped(skipped)


def end_blocked(pk: int, to: State, now: datetime, **columns: Any) -> bool:
    """End a blocked execution without letting it in. Returns whether it was blocked."""
    rows = SchedulerExecution.objects.filter(pk=pk)
    return bool(rows.move([State.BLOCKED], to, wake_at=None, start_by=None, finished_at=now, **columns))


def release(schedules: Collection[int], broker: Broker, now: datetime) -> list[SchedulerExecution]:
    """Let in the executions of these schedules that wait, if no other one is open, and publish them.

    Call this function outside a transaction, after the end of an execution is committed.
    """
    if not Scheduler.objects.filter(pk__in=schedules, waiting_run__isnull=False).exists():
        return []
    released = again_after_conflicts(lambda: _release(schedules, now, broker.embedded))
    publish(released, broker)
    return released


def release_after(schedules: Collection[int], broker: Broker, now: datetime) -> None:
    """Do the same as `release`. What fails is left to the sweep."""
    try:
        release(schedules, broker, now)
    except DatabaseError as error:
        log.warning("Runs that wait for their turn are let in by a sweep, because the database failed: %s", error)


def _release(schedules: Collection[int], now: datetime, embedded: bool) -> list[SchedulerExecution]:
    with transaction.atomic():
        rows = Scheduler.objects.filter(pk__in=schedules, waiting_run__isnull=False).order_by("pk")
        own = list(locking(rows).only(*overlap.COLUMNS))
        opened = overlap.open_runs(own)
        waiting = {row.pk: row.waiting_run for row in own if row.waiting_run is not None and row.pk not in opened}
        known = SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk__in=list(waiting.values()))
        mine = set(known.values_list("scheduler", "pk"))
        return let_in({pk: run for pk, run in waiting.items() if (pk, run) in mine}, now, embedded)
