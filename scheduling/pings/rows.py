"""Writes the rows of pings in the transaction in which an attempt starts or ends. They are sent later (`sender`).

A run of a schedule without a monitor costs no statement. A ping never stands in the way of a run: if the database
refuses the row of a ping, the run goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from scheduling.core.lifecycle import State
from scheduling.core.messages import TaskMessage
from scheduling.core.pings import ENDS, Event, Kind, run_id
from scheduling.logs import get_logger
from scheduling.models import Ping, SchedulerExecution
from scheduling.processes.database import is_away
from scheduling.processes.unusable_values import problem

log = get_logger(__name__)


@dataclass(frozen=True)
class Ended:
    """An attempt that is over.

    Args:
        state: the state of the execution after it.
        kinds: the monitors that are told (`RunConfig.pings`).
    """

    execution_id: int
    attempt: int
    state: State
    kinds: Sequence[Kind]


def note_starts(started: Iterable[tuple[TaskMessage, Sequence[Kind]]], now: datetime) -> int:
    """Note the starts of runs. Returns how many pings there are to send.

    Args:
        started: the message of each attempt that has started, and the monitors that are told.
    """
    return sum(
        _unless_refused(message.execution_id, partial(_start, message, kinds, now))
        for message, kinds in started
        if kinds and message.scheduler_id
    )


def _start(message: TaskMessage, kinds: Sequence[Kind], now: datetime) -> int:
    assert message.execution_id is not None  # noqa: S101 - the attempt has started
    assert message.scheduler_id  # noqa: S101 - only schedules have monitors
    told: set[str] = set()
    if message.attempt > 1:  # a retry, or a run whose handler was not ready: its start was told
        told = {*Ping.objects.filter(open_execution=message.execution_id).values_list("kind", flat=True)}
    rows = [
        Ping(
            execution_id=message.execution_id, scheduler_id=message.scheduler_id, kind=kind, event=Event.START.value,
            attempt=message.attempt, run_id=run_id(message.scheduler_id, message.execution_key, message.attempt),
            begun_at=now, created_at=now, at=now, open_execution=message.execution_id,
        )
        for kind in kinds
        if kind not in told
    ]  # fmt: skip
    if rows:
        Ping.objects.bulk_create(rows)
    return len(rows)


def note_ends(ended: Iterable[Ended], now: datetime) -> int:
    """Note the ends of runs. Attempts after which their run goes on are left out. Returns how many pings to send."""
    over = [each for each in ended if each.kinds and each.state in ENDS]
    return sum(_unless_refused(each.execution_id, partial(_end, each, now)) for each in over)


def _end(ended: Ended, now: datetime) -> int:
    begun = {row.kind: row for row in Ping.objects.filter(open_execution=ended.execution_id)}
    rows = [_end_of(begun[kind], ended.attempt, ended.state, now) for kind in ended.kinds if kind in begun]
    if missing := [kind for kind in ended.kinds if kind not in begun]:
        # The schedule has got its monitor while the run was in progress.
        found = SchedulerExecution.objects.filter(pk=ended.execution_id, scheduler__isnull=False)
        for schedule, key, begun_at in found.values_list("scheduler_id", "execution_key", "started_at"):
            run = run_id(schedule, key, ended.attempt)
            rows += [
                Ping(
                    execution_id=ended.execution_id, scheduler_id=schedule, kind=kind, event=ENDS[ended.state].value,
                    attempt=ended.attempt, run_id=run, begun_at=begun_at or now, created_at=now, at=now,
                )
                for kind in missing
            ]  # fmt: skip
    if begun:
        Ping.objects.filter(pk__in=[row.pk for row in begun.values()]).update(open_execution=None)
    Ping.objects.bulk_create(rows)
    return len(rows)


def _end_of(start: Ping, attempt: int, state: State, now: datetime) -> Ping:
    return Ping(
        execution_id=start.execution_id, scheduler_id=start.scheduler_id, kind=start.kind, event=ENDS[state].value,
        attempt=attempt, run_id=start.run_id, begun_at=start.begun_at, created_at=now, at=now,
    )  # fmt: skip


def note_other_ends(now: datetime, limit: int = 100) -> int:
    """Note the ends of runs that no attempt has ended: cancelled while they waited, or set aside. Returns how many."""
    starts, _unusable = readable(Ping.objects.unended().select_related("execution").order_by("pk")[:limit], now)
    return sum(_unless_refused(start.execution_id, partial(_other_end, start, now)) for start in starts)


def _other_end(start: Ping, now: datetime) -> int:
    # Of two processes, one writes the end.
    if not Ping.objects.filter(pk=start.pk, open_execution__isnull=False).update(open_execution=None):
        return 0
    _end_of(start, start.execution.attempt, State(start.execution.state), now).save(force_insert=True)
    return 1


def readable(rows: QuerySet[Ping], now: datetime) -> tuple[list[Ping], int]:
    """The rows, without those that cannot be used, and how many these are. They are given up with their reason.

    Plain SQL may have written any value. One bad row must not hold up the pings of all other schedules.
    """
    try:
        with transaction.atomic():
            found = list(rows)
        bad = [row.pk for row in found if not _is_usable(row)]
    except Exception as error:
        if is_away(error):
            raise
        found, bad = [], []
        for pk in list(rows.values_list("pk", flat=True)):
            row = _with_execution(pk)
            if row is not None and _is_usable(row):
                found.append(row)
            else:
                bad.append(pk)
    if not bad:
        return found, 0
    log.error("Pings whose rows cannot be used are given up: %s", bad)
    columns = {"state": Ping.State.DROPPED, "at": now, "sending": False, "open_execution": None}
    Ping.objects.filter(pk__in=bad).update(**columns, error="A column of this row cannot be used.")
    return [row for row in found if row.pk not in bad], len(bad)


def _with_execution(pk: int) -> Ping | None:
    try:
        with transaction.atomic():
            return Ping.objects.select_related("execution").get(pk=pk)
    except Exception as error:
        if is_away(error):
            raise
        return None


def _is_usable(row: Ping) -> bool:
    """Whether all columns have values of their types. SQLite stores any type."""
    return not any(problem(field, getattr(row, field.attname)) for field in Ping._meta.concrete_fields)


def _unless_refused(execution_id: int | None, write: Callable[[], int]) -> int:
    try:
        with transaction.atomic():
            return write()
    except Exception as error:
        if is_away(error):
            raise
        log.error("A ping cannot be recorded: %s", error, extra={"execution": execution_id})
        return 0
