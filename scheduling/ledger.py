"""The two compare-and-sets on which the promises rest: start and settle.

Plain SQL, the same on SQLite, MariaDB, MySQL and PostgreSQL: both run once for every attempt, and
the ORM's share of a no-op run would be larger than the database's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import connection

from scheduling.core.lifecycle import STARTABLE, State
from scheduling.models import Attempt, SchedulerExecution

FAR = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True)
class Ended:
    """One attempt that is over, and who ran it."""

    execution_id: int
    attempt: int
    started_at: datetime
    consumer: str
    pid: int | None = None


@dataclass(frozen=True)
class Next:
    """What the row becomes when an attempt is settled."""

    state: State
    wake_at: datetime | None = None
    error_class: str = ""
    error_message: str = ""
    fingerprint: str = ""
    reason: str = ""
    uncounted: int = 0
    """1 for an attempt that the retry policy shall not count."""
    published_at: datetime | None = None
    keeps_published: bool = False
    """Leave the column as it is: nothing is to be published any more."""


@dataclass(frozen=True)
class Entry:
    """The columns of the attempt's own, immutable row beside `Ended`."""

    outcome: str
    exit_code: int | None = None
    signal: int | None = None
    error_class: str = ""
    error_message: str = ""
    traceback: str = ""
    retry_at: datetime | None = None


@lru_cache(maxsize=8)
def _statements(vendor: str) -> tuple[str, str, str]:
    """SQL of start, settle and the attempt's insert; the quoting is the vendor's."""
    quote = connection.ops.quote_name
    execution = quote(SchedulerExecution._meta.db_table)
    column = {field.name: quote(str(field.column)) for field in SchedulerExecution._meta.concrete_fields}
    startable = ", ".join(f"'{state.value}'" for state in sorted(STARTABLE))
    start = (
        f"UPDATE {execution} SET {column['state']} = '{State.RUNNING.value}', {column['attempt']} = %s, "  # noqa: S608
        f"{column['started_at']} = %s, {column['consumer']} = %s, {column['wake_at']} = %s, "
        f"{column['pid']} = NULL, {column['finished_at']} = NULL, {column['progress']} = '' "
        f"WHERE {column['id']} = %s AND {column['attempt']} = %s AND {column['state']} IN ({startable})"
    )
    settle = (
        f"UPDATE {execution} SET {column['state']} = %s, {column['wake_at']} = %s, "  # noqa: S608
        f"{column['finished_at']} = %s, {column['pid']} = %s, {column['error_class']} = %s, "
        f"{column['error_message']} = %s, {column['fingerprint']} = %s, {column['reason']} = %s, "
        f"{column['retry_base']} = {column['retry_base']} + %s, "
        f"{column['published_at']} = CASE WHEN %s = 1 THEN {column['published_at']} ELSE %s END "
        f"WHERE {column['id']} = %s AND {column['attempt']} = %s "
        f"AND {column['state']} = '{State.RUNNING.value}' AND {column['wake_at']} <= %s"
    )
    names = [
        "execution",
        "number",
        "started_at",
        "finished_at",
        "consumer",
        "pid",
        "outcome",
        "exit_code",
        "signal",
        "error_class",
        "error_message",
        "traceback",
        "retry_at",
    ]
    own = {field.name: str(field.column) for field in Attempt._meta.concrete_fields}
    columns = ", ".join(quote(own[name]) for name in names)
    insert = f"INSERT INTO {quote(Attempt._meta.db_table)} ({columns}) VALUES ({', '.join(['%s'] * len(names))})"  # noqa: S608
    return start, settle, insert


def _at(instant: datetime | None) -> Any:
    return connection.ops.adapt_datetimefield_value(instant) if instant is not None else None


def start(execution_id: int, attempt: int, consumer: str, now: datetime, lease_until: datetime) -> bool:
    """Begin attempt `attempt` if the row still stands right before it; False: the message is a copy."""
    with connection.cursor() as cursor:
        cursor.execute(
            _statements(connection.vendor)[0],
            [attempt, _at(now), consumer, _at(lease_until), execution_id, attempt - 1],
        )
        return bool(cursor.rowcount == 1)


def settle(ended: Ended, following: Next, entry: Entry, now: datetime, lease_before: datetime = FAR) -> bool:
    """Record the end of an attempt; False: somebody fenced this process off, and nothing is written.

    Call it in a transaction: both rows are written or none.

    Args:
        lease_before: settle only if the lease ends before (the sweep's guard against a lease that
            was renewed meanwhile).
    """
    _, update, insert = _statements(connection.vendor)
    final = following.state not in (State.RETRYING, State.QUEUED, State.CLAIMED)
    with connection.cursor() as cursor:
        cursor.execute(
            update,
            [
                following.state.value,
                _at(following.wake_at),
                _at(now) if final else None,
                ended.pid,
                following.error_class,
                following.error_message,
                following.fingerprint,
                following.reason,
                following.uncounted,
                1 if following.keeps_published else 0,
                _at(following.published_at),
                ended.execution_id,
                ended.attempt,
                _at(lease_before),
            ],
        )
        if cursor.rowcount != 1:
            return False
        cursor.execute(
            insert,
            [
                ended.execution_id,
                ended.attempt,
                _at(ended.started_at),
                _at(now),
                ended.consumer,
                ended.pid,
                entry.outcome,
                entry.exit_code,
                entry.signal,
                entry.error_class,
                entry.error_message,
                entry.traceback,
                _at(entry.retry_at),
            ],
        )
    return True
