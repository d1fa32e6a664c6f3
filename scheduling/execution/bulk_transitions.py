"""Starts and settles many attempts with few statements. Each attempt is compared by itself, as in `transitions`.

One statement locks the rows and reads what they say. The attempts that may move are then moved together. Call these
functions in a transaction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from scheduling.core.chunks import chunks
from scheduling.core.lifecycle import State, check_move
from scheduling.core.messages import TaskMessage
from scheduling.execution.ownership import owned
from scheduling.execution.transitions import (
    AttemptValues,
    Ended,
    Entry,
    adapted,
    adapting,
    attempt_values,
    may_start,
    start_clause,
    start_values,
    waits,
)
from scheduling.models import SchedulerExecution
from scheduling.processes.database import locking


def start_many(messages: Sequence[TaskMessage], consumer: str, now: datetime, lease_until: datetime) -> set[int]:
    """Start the attempts that these messages ask for; see `transitions.start`.

    Returns:
        The ids of the executions whose attempts were started.
    """
    asked = {message.execution_id: message for message in messages if message.execution_id is not None}
    started: set[int] = set()
    for keys in chunks(sorted(asked)):
        rows = locking(SchedulerExecution.objects.filter(pk__in=keys).order_by("pk"))
        found = defaultdict[int, list[int]](list)
        for pk, attempt, key, state, by in rows.values_list("pk", "attempt", "execution_key", "state", "start_by"):
            meant = (attempt + 1, key) == (asked[pk].attempt, asked[pk].execution_key)
            if meant and may_start(state, by, attempt, now):
                found[attempt].append(pk)
        for attempt, own in found.items():
            _start(attempt, own, start_values(attempt + 1, consumer, now, lease_until), now)
            started.update(own)
    return started


def _start(attempt: int, keys: Sequence[int], values: list[Any], now: datetime) -> None:
    quote = connection.ops.quote_name
    column = {field.name: quote(str(field.column)) for field in SchedulerExecution._meta.concrete_fields}
    where = f"{column['id']} IN ({', '.join(['%s'] * len(keys))}) AND {column['attempt']} = %s AND {waits()}"
    with connection.cursor() as cursor:
        cursor.execute(f"{start_clause()} WHERE {where}", [*values, *keys, attempt, adapted(now)])
        _check_count(cursor.rowcount, keys)


def settle_succeeded(
    ended: Mapping[int, tuple[Ended, Entry]], now: datetime, attempts: list[AttemptValues]
) -> set[int]:
    """Record the success of the attempts of one batch; see `transitions.settle`.

    Args:
        ended: the attempts with their entries, by the id of the execution. They have the same process id and the same
            progress.
        attempts: gets the rows of the attempts that were settled.

    Returns:
        The ids of the executions that were settled. The others belong to other processes by now.
    """
    check_move([State.RUNNING], State.SUCCEEDED)
    settled: set[int] = set()
    for keys in chunks(sorted(ended)):
        found = defaultdict[int, list[int]](list)
        for pk, number in sorted(owned((pk, ended[pk][0].attempt) for pk in keys)):
            found[number].append(pk)
        for number, own in found.items():
            _settle(number, own, ended[own[0]][0], now)
            settled.update(own)
    at = adapting()
    attempts += [attempt_values(*ended[pk], now, at) for pk in ended if pk in settled]
    return settled


def _settle(number: int, keys: Sequence[int], ended: Ended, now: datetime) -> None:
    columns: dict[str, Any] = dict.fromkeys(("error_class", "error_message", "fingerprint", "reason"), "")
    columns |= {"wake_at": None, "deferred_at": None, "finished_at": now, "pid": ended.pid, "progress": ended.progress}
    rows = SchedulerExecution.objects.filter(pk__in=keys, attempt=number, state=State.RUNNING.value)
    _check_count(rows.update(state=State.SUCCEEDED.value, **columns), keys)


def _check_count(moved: int, keys: Iterable[int]) -> None:
    """Raise an error if a locked row has not moved. The caller's transaction is then undone."""
    if moved != len(list(keys)):
        raise RuntimeError(f"{moved} of the executions {list(keys)} were moved, although all of them are locked.")
