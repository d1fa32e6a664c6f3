"""Starts and settles attempts by two compare-and-sets, so that only one process can own an attempt.

Start and settle are plain SQL, the same on SQLite, MariaDB, MySQL and PostgreSQL. Each of them runs once for every
attempt. The ORM would need more time to build such a statement than the database needs to run it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import connection

from scheduling.core.lifecycle import WAITING, State, check_move
from scheduling.models import Attempt, SchedulerExecution

DISTANT_FUTURE = datetime(9999, 12, 31, tzinfo=UTC)

SETTLED = ("state", "wake_at", "finished_at", "pid", "error_class", "error_message", "fingerprint", "reason")
"""The columns that the statement of `settle` sets first. The values of the statement have the same order."""


@dataclass(frozen=True)
class Ended:
    """An attempt that is over, and the consumer that ran it."""

    execution_id: int
    attempt: int
    started_at: datetime
    consumer: str
    pid: int | None = None


@dataclass(frozen=True)
class Next:
    """The new column values of the execution's row when an attempt is settled."""

    state: State
    wake_at: datetime | None = None
    error_class: str = ""
    error_message: str = ""
    fingerprint: str = ""
    reason: str = ""
    uncounted: int = 0
    """1 if the retry policy does not count the attempt, otherwise 0."""
    published_at: datetime | None = None
    keeps_published: bool = False
    """Whether `published_at` keeps its value, because no message will be published."""


@dataclass(frozen=True)
class Entry:
    """The columns of the attempt's row that `Ended` does not have. The attempt's row never changes."""

    outcome: str
    exit_code: int | None = None
    signal: int | None = None
    error_class: str = ""
    error_message: str = ""
    traceback: str = ""
    retry_at: datetime | None = None


@lru_cache(maxsize=8)
def _statements(vendor: str) -> tuple[str, str, str]:
    """The SQL statements of start, of settle and of the attempt's insert, with names quoted for this database."""
    quote = connection.ops.quote_name
    execution = quote(SchedulerExecution._meta.db_table)
    column = {field.name: quote(str(field.column)) for field in SchedulerExecution._meta.concrete_fields}
    check_move(WAITING, State.RUNNING)
    startable = ", ".join(f"'{state.value}'" for state in sorted(WAITING))
    start = (
        f"UPDATE {execution} SET {column['state']} = '{State.RUNNING.value}', {column['attempt']} = %s, "  # noqa: S608
        f"{column['started_at']} = %s, {column['consumer']} = %s, {column['wake_at']} = %s, "
        f"{column['pid']} = NULL, {column['finished_at']} = NULL, {column['progress']} = '' "
        f"WHERE {column['id']} = %s AND {column['attempt']} = %s AND {column['execution_key']} = %s "
        f"AND {column['state']} IN ({startable})"
    )
    settle = (
        f"UPDATE {execution} SET {', '.join(f'{column[name]} = %s' for name in SETTLED)}, "  # noqa: S608
        f"{column['retry_base']} = {column['retry_base']} + %s, "
        f"{column['published_at']} = CASE WHEN %s = 1 THEN {column['published_at']} ELSE %s END "
        f"WHERE {column['id']} = %s AND {column['attempt']} = %s "
        f"AND {column['state']} = '{State.RUNNING.value}' AND {column['wake_at']} <= %s"
    )
    names = ["execution", "number", "started_at", "finished_at", "consumer", "pid"]
    names += [own.name for own in fields(Entry)]
    attempt = {field.name: str(field.column) for field in Attempt._meta.concrete_fields}
    columns = ", ".join(quote(attempt[name]) for name in names)
    insert = f"INSERT INTO {quote(Attempt._meta.db_table)} ({columns}) VALUES ({', '.join(['%s'] * len(names))})"  # noqa: S608
    return start, settle, insert


def _at(instant: datetime | None) -> Any:
    return connection.ops.adapt_datetimefield_value(instant) if instant is not None else None


def start(execution_id: int, attempt: int, key: str, consumer: str, now: datetime, lease_until: datetime) -> bool:
    """Begin attempt `attempt` if the execution waits and its last attempt is `attempt - 1`.

    Returns False if the message is a copy.

    Args:
        key: the execution key of the message, which the row must have too. After a database was set up anew or
            restored, an old message may contain the id of a new row.
    """
    values = [attempt, _at(now), consumer, _at(lease_until), execution_id, attempt - 1, key]
    with connection.cursor() as cursor:
        cursor.execute(_statements(connection.vendor)[0], values)
        return bool(cursor.rowcount == 1)


def settle(ended: Ended, following: Next, entry: Entry, now: datetime, lease_before: datetime = DISTANT_FUTURE) -> bool:
    """Record the end of an attempt. Returns False, and writes nothing, if another process owns the execution by now.

    Call it in a transaction, so that the rows of the execution and the attempt are written together or not at all.

    Args:
        lease_before: settle only if the lease ends at or before this instant. With this argument, a sweep does not
            settle an attempt whose lease was renewed meanwhile.

    Raises:
        ValueError: a running execution may not move to the state of `following`.
    """
    check_move([State.RUNNING], following.state)
    _, update, insert = _statements(connection.vendor)
    finished_at = _at(now) if following.state not in WAITING else None
    state = [following.state.value, _at(following.wake_at), finished_at, ended.pid]
    error = [following.error_class, following.error_message, following.fingerprint, following.reason]
    counted = [following.uncounted, 1 if following.keeps_published else 0, _at(following.published_at)]
    condition = [ended.execution_id, ended.attempt, _at(lease_before)]
    with connection.cursor() as cursor:
        cursor.execute(update, [*state, *error, *counted, *condition])
        if cursor.rowcount != 1:
            return False
        who = [ended.execution_id, ended.attempt, _at(ended.started_at), _at(now), ended.consumer, ended.pid]
        own = vars(entry) | {"retry_at": _at(entry.retry_at)}
        cursor.execute(insert, [*who, *own.values()])
    return True
