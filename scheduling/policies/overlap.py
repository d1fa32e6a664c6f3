"""Lets at most one execution of a schedule be open at a time, if the schedule runs alone (`core.overlap`).

An execution is open until it has ended for good: while it waits, runs, or waits for a retry. Each way to a new or
requeued execution locks the row of the schedule, looks whether an execution is open, and records the one that it lets
in, in one transaction. So any number of processes may try at the same time, and a crash leaves nothing half done.

The row of the schedule names the last execution that was let in, because no index finds the open executions of one
schedule among a million. If the schedule could overlap until now, the name is missing. Then all its executions are
asked.

With the policies `wait` and `replace`, a new execution may be blocked: it is on record, and is let in when the others
are over (`execution.blocked_runs`). The row of the schedule names it, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from django.db.models import F, Q

from scheduling.core.lifecycle import LET_IN, OPEN_STATES, State
from scheduling.core.overlap import Turn, blocked_by, runs_alone, turn, waits_its_turn
from scheduling.core.skip_reasons import LEFT_OUT, PAUSED_SERVICE, left_out
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.set_each import set_each
from scheduling.processes.database import locking

COLUMNS = ("id", "overlap", "stay_alive", "open_run", "open_skip", "waiting_run")
"""The columns of a schedule that this module reads."""


AHEAD = timedelta(days=1)
"""A sweep looks first at the executions whose time was the earliest."""


class Alone(Protocol):
    """The columns `COLUMNS` of a schedule whose row is locked."""

    @property
    def id(self) -> int: ...
    @property
    def overlap(self) -> str: ...
    @property
    def stay_alive(self) -> bool: ...
    @property
    def open_run(self) -> int | None: ...
    @property
    def open_skip(self) -> int | None: ...
    @property
    def waiting_run(self) -> int | None: ...


def open_runs(rows: Iterable[Alone]) -> dict[int, int]:
    """The open executions of the schedules that run alone. The rows of the schedules are locked.

    Returns:
        A dict that maps the id of each schedule that has an open execution to the id of this execution.
    """
    own = [row for row in rows if runs_alone(row.overlap, row.stay_alive)]
    named = {row.open_run for row in own if row.open_run is not None}
    known = SchedulerExecution.objects.filter(pk__in=named).values_list("pk", "scheduler", "state") if named else ()
    states: dict[tuple[int | None, int | None], str] = {(schedule, pk): state for pk, schedule, state in known}
    found, unknown = dict[int, int](), list[int]()
    for row in own:
        # A fixture may bring an id from another database, where another execution had it.
        state = states.get((row.id, row.open_run))
        if state is None:
            unknown.append(row.id)
        elif state in OPEN_STATES and row.open_run is not None:
            found[row.id] = row.open_run
    if unknown:
        let_in_or_after = Q(state__in=[state.value for state in LET_IN]) | Q(
            state=State.BLOCKED.value, waits_for__isnull=False
        )
        still = SchedulerExecution.objects.filter(let_in_or_after, scheduler__in=unknown)
        found |= dict(still.order_by("pk").values_list("scheduler", "pk"))
    return found


def blocked_runs(rows: Iterable[Alone]) -> dict[int, int]:
    """The executions that wait for their turn. The rows of the schedules are locked.

    Returns:
        A dict that maps the id of each schedule that has such an execution to the id of this execution.
    """
    named = {
        row.waiting_run: row.id
        for row in rows
        if row.waiting_run is not None and runs_alone(row.overlap, row.stay_alive)
    }
    if not named:
        return {}
    found = SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk__in=list(named))
    return {pk: run for run, pk in found.values_list("pk", "scheduler") if named.get(run) == pk}


@dataclass(frozen=True)
class Held:
    """The due schedules that may not start another execution at once.

    Args:
        by: maps the id of each schedule to the id of the execution that is open, or that waits for its turn.
        on_record: the schedules whose occurrence is on record already: an earlier skipped execution counts it.
    """

    by: Mapping[int, int]
    on_record: Collection[int]

    @property
    def counted(self) -> int:
        """How many occurrences were added to earlier skipped executions."""
        return len(self.on_record)


def hold(due: Iterable[Alone], now: datetime) -> Held:
    """Find the schedules that may not start another execution. Their rows are locked.

    One skipped execution counts all occurrences that are left out because of the same open execution. A service that
    runs for a year would otherwise have a skipped execution for each minute.
    """
    rows = list(due)
    held = blocked_runs(rows) | open_runs(rows)
    named = {
        (row.id, row.open_skip)
        for row in rows
        if row.id in held and row.open_skip is not None and not waits_its_turn(row.overlap, row.stay_alive)
    }
    if not named:
        return Held(held, ())
    skips = SchedulerExecution.objects.in_state(State.SKIPPED).filter(pk__in=[pk for _schedule, pk in named])
    # The rows are locked, so that the cleanup removes none of them meanwhile.
    known = set(locking(skips).values_list("scheduler", "pk")) & named
    skips.filter(pk__in=[pk for _schedule, pk in known]).update(
        missed=F("missed") + 1, executed_at=now, finished_at=now
    )
    return Held(held, [schedule for schedule, _pk in known])


def note(due: Iterable[Alone], inserted: Iterable[SchedulerExecution]) -> None:
    """Record which executions are open from now on, and which skipped ones count what is left out because of them.

    Args:
        due: the schedules; their rows are locked.
        inserted: their new executions.
    """
    rows = list(due)
    own = {row.id for row in rows if runs_alone(row.overlap, row.stay_alive)}
    opened, skips = dict[int, int](), dict[int, int]()
    for execution in inserted:
        if (pk := execution.scheduler_id) is None or pk not in own:
            continue
        if execution.state == State.BLOCKED.value and execution.waits_for is None:
            continue  # `execution.blocked_runs` decides when it is let in
        if execution.state != State.SKIPPED.value:
            opened[pk] = execution.pk
        elif execution.reason.startswith(LEFT_OUT):
            skips[pk] = execution.pk
    let_in(opened)
    _set("open_skip", skips)
    if forgotten := [row.id for row in rows if row.id not in own and row.open_run is not None]:
        _forget(forgotten)


def let_in(executions: Mapping[int, int]) -> None:
    """Record which executions are open from now on. The rows of the schedules are locked.

    Args:
        executions: maps the id of each schedule to the id of its execution.
    """
    _set("open_run", executions, open_skip=None, waiting_run=None)


def lets_wait(executions: Mapping[int, int]) -> None:
    """Record which executions wait for their turn from now on. The rows of the schedules are locked.

    Args:
        executions: maps the id of each schedule to the id of its execution.
    """
    _set("waiting_run", executions)


def _forget(schedules: Collection[int]) -> None:
    """Forget which execution is open: these schedules may overlap by now, so several executions may be open."""
    Scheduler.objects.filter(pk__in=schedules).update(open_run=None, open_skip=None)


def _set(column: str, values: Mapping[int, int], **columns: None) -> None:
    if values:
        set_each(Scheduler, [column], {pk: [value] for pk, value in values.items()}, **columns)


def look_soon(ended: Collection[int], now: datetime) -> None:
    """Let the next sweep look at the executions that wait until these ones are over.

    Args:
        ended: the ids of executions that have ended.
    """
    schedules = SchedulerExecution.objects.filter(pk__in=ended, scheduler__isnull=False).values("scheduler")
    named = Scheduler.objects.filter(pk__in=schedules, waiting_run__isnull=False).values_list("waiting_run", flat=True)
    if runs := [run for run in named if run is not None]:
        SchedulerExecution.objects.in_state(State.BLOCKED).filter(pk__in=runs).update(wake_at=now - AHEAD)


def concerned(schedules: Iterable[int | None]) -> set[int]:
    """Which of these schedules must be given to `locked`: they run alone, or did so until lately."""
    rows = Scheduler.objects.filter(pk__in={pk for pk in schedules if pk is not None})
    policies = rows.values_list("pk", "overlap", "stay_alive", "open_run")
    return {pk for pk, overlap, service, opened in policies if runs_alone(overlap, service) or opened is not None}


def locked(scheduler_id: int | None) -> Scheduler | None:
    """Lock a schedule that runs alone. Returns None if there is no such schedule, or if it may overlap.

    Call this function in the transaction that lets an execution in.
    """
    if scheduler_id is None:
        return None
    rows = Scheduler.objects.filter(pk=scheduler_id)
    known = rows.values_list("overlap", "stay_alive", "open_run").first()
    if known is None or (not runs_alone(*known[:2]) and known[2] is None):
        return None
    row = locking(rows).only(*COLUMNS, "status", "date_time").first()
    if row is None or row.runs_alone:
        return row
    _forget([row.pk])
    return None


def refusal(row: Scheduler) -> str:
    """Say why an execution of the failed inbox may not be requeued now; empty if it may. Such an execution never waits.

    The caller locks the row before the call. Otherwise the answer may be wrong a moment later.
    """
    entry = enter(row)
    return left_out(entry.behind, row.stay_alive) if entry.behind is not None else entry.said


@dataclass(frozen=True)
class Entry:
    """What becomes of a new execution that is not an occurrence.

    Args:
        turn: whether it starts, waits for its turn, or is left out.
        behind: the id of the execution that is open, or that waits for its turn.
        said: why it is left out or waits; empty if it starts.
    """

    turn: Turn
    behind: int | None = None
    said: str = ""


def enter(row: Scheduler) -> Entry:
    """What becomes of a new execution of a schedule that runs alone.

    The caller locks the row before the call. Otherwise the answer may be wrong a moment later.
    """
    if row.stay_alive and not row.status and row.date_time is None:
        return Entry(Turn.LEFT_OUT, None, PAUSED_SERVICE)
    behind = (blocked_runs([row]) | open_runs([row])).get(row.pk)
    found = turn(row.overlap, row.stay_alive, behind is not None)
    if behind is None or found is Turn.STARTS:
        return Entry(Turn.STARTS)
    waits = found is Turn.WAITS
    return Entry(found, behind, blocked_by(behind, row.overlap) if waits else left_out(behind, row.stay_alive))
