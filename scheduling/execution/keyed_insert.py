"""Inserts a run that has a key of its caller, if no other run has the key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import IntegrityError, transaction

from scheduling.core.lifecycle import OPEN_STATES, WAITING, State
from scheduling.execution.bulk_rows import insert_rows
from scheduling.execution.new_run import NewRun
from scheduling.models import SchedulerExecution

Unique = Literal["", "waiting", "running"]
"""How long a key refuses a second run: for ever, while the run waits, or until the run is over."""

KEPT_BY: dict[str, frozenset[State]] = {"waiting": WAITING, "running": OPEN_STATES}
"""The states of a run that keeps its key."""

CLOCKS_AGREE = timedelta(seconds=1)
"""By more than this, the clocks of two processes do not differ: each follows the clock of the database server."""

TRIES = 5
"""How often an insert is tried that other callers with the same key are in the way of."""


def insert_with_key(row: NewRun, unique: Unique, replaces: bool, shared: Mapping[str, Any]) -> int | None:
    """Insert the row, or find the row that has its key. The unique key decides between callers at the same time.

    Args:
        unique: how long the key refuses a second run.
        replaces: whether a run with this key that waits takes over the instant, the params and the queue.
        shared: the columns that all new rows have in common.

    Returns:
        The id of the row that has the key; None if the row was inserted.
    """
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                insert_rows([row], shared)
        except IntegrityError:
            found = _standing(row, unique, replaces, shared["executed_at"])
            if found is not None:
                return found
        else:
            return None
    raise IntegrityError(f"The key {row.key!r} was taken and given free {TRIES} times.")


def _standing(row: NewRun, unique: Unique, replaces: bool, now: datetime) -> int | None:
    """The id of the execution that has the key; None if the key is free now."""
    holder = SchedulerExecution.objects.filter(key=row.key)
    found = holder.values_list("pk", "state").first()
    if found is None:
        return None
    pk, state = found
    kept = KEPT_BY.get(unique)
    if kept is not None and state not in kept:
        holder.filter(pk=pk).exclude(state__in=[str(one) for one in kept]).update(key=None)
        return None
    if replaces and not _postponed(pk, row, now):
        holder.filter(pk=pk).update(key=None)
        return None
    return pk


def _postponed(pk: int, row: NewRun, now: datetime) -> bool:
    """Let a run that waits for its instant wait until the later instant, and run with the later params and in the
    later queue.

    Returns:
        Whether it did. A run that is due within the next second may be starting already, with its old params.
    """
    waits = SchedulerExecution.objects.in_state(State.CLAIMED, State.QUEUED).filter(pk=pk, attempt=0)
    columns = {"wake_at": row.wake_at, "scheduled_at": row.scheduled_at, "params": row.params}
    columns |= {"headers": row.headers, "queue": row.queue}
    return bool(waits.filter(scheduled_at__gt=now + CLOCKS_AGREE).update(**columns))
