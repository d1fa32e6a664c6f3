"""Starts and settles attempts. Each of the two steps is a compare-and-set, so only one process can own an attempt.

The statements are plain SQL that runs on SQLite, MariaDB, MySQL and PostgreSQL. The ORM is not used, because both steps
run for every attempt, and the ORM would need more time to build a statement than the database needs to run it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, tzinfo
from functools import lru_cache, partial
from typing import Any, NamedTuple

from django.db import connection

from scheduling.core.lifecycle import WAITING, State, check_move
from scheduling.models import Attempt, SchedulerExecution

DISTANT_FUTURE = datetime(9999, 12, 31, tzinfo=UTC)

SETTLED = (
    "state", "wake_at", "finished_at", "pid", "progress", "error_class", "error_message", "fingerprint", "reason",
    "deferred_at",
)  # fmt: skip
"""The first columns that the SQL statement of `settle` sets. `settle` passes their values in the same order."""


class BatchLink(NamedTuple):
    """The attempt of the run that leads a batch, and the number of its runs."""

    leader: int
    attempt: int
    size: int


NO_BATCH = (None, None, None)


@dataclass(frozen=True)
class Ended:
    """An attempt that is over, and the consumer that ran it."""

    execution_id: int
    attempt: int
    started_at: datetime
    consumer: str
    pid: int | None = None
    progress: str = ""
    release: str = ""
    """The consumer's setting CRON_RELEASE; empty if it is unknown."""
    cpu_ms: int | None = None
    peak_memory_kb: int | None = None
    batch: BatchLink | None = None
    """The batch in which the attempt was called; None if it was called by itself."""


@dataclass(frozen=True)
class Next:
    """The column values that the execution's row gets when an attempt is settled."""

    state: State
    wake_at: datetime | None = None
    error_class: str = ""
    error_message: str = ""
    fingerprint: str = ""
    reason: str = ""
    deferred_at: datetime | None = None
    uncounted: int = 0
    """1 if the retry policy does not count the attempt, otherwise 0."""
    snoozes: int = 0
    """1 if the handler was not ready, otherwise 0."""
    published_at: datetime | None = None
    keeps_published: bool = False
    """Whether `published_at` keeps its value, because no message will be published."""


@dataclass(frozen=True)
class Entry:
    """The columns of the attempt's row that `Ended` does not have. Once written, the attempt's row never changes."""

    outcome: str
    exit_code: int | None = None
    signal: int | None = None
    error_class: str = ""
    error_message: str = ""
    traceback: str = ""
    retry_at: datetime | None = None
    result: str = ""


@lru_cache(maxsize=8)
def _statements(vendor: str) -> tuple[str, str, str]:
    """Three SQL statements, with names quoted for this database: start, settle, and insert the attempt's row."""
    quote = connection.ops.quote_name
    execution = quote(SchedulerExecution._meta.db_table)
    column = {field.name: quote(str(field.column)) for field in SchedulerExecution._meta.concrete_fields}
    start = (
        f"{start_clause()} WHERE {column['id']} = %s AND {column['attempt']} = %s AND {column['execution_key']} = %s "
        f"AND {waits()}"
    )
    settle = (
        f"UPDATE {execution} SET {', '.join(f'{column[name]} = %s' for name in SETTLED)}, "  # noqa: S608
        f"{column['retry_base']} = {column['retry_base']} + %s, "
        f"{column['snoozes']} = {column['snoozes']} + %s, "
        f"{column['published_at']} = CASE WHEN %s = 1 THEN {column['published_at']} ELSE %s END "
        f"WHERE {column['id']} = %s AND {column['attempt']} = %s "
        f"AND {column['state']} = '{State.RUNNING.value}' AND {column['wake_at']} <= %s"
    )
    names = ["execution", "number", "started_at", "finished_at", "consumer", "pid"]
    names += ["release", "cpu_ms", "peak_memory_kb", "batch_leader", "batch_attempt", "batch_size"]
    names += [own.name for own in fields(Entry)]
    attempt = {field.name: str(field.column) for field in Attempt._meta.concrete_fields}
    columns = ", ".join(quote(attempt[name]) for name in names)
    insert = f"INSERT INTO {quote(Attempt._meta.db_table)} ({columns}) VALUES ({', '.join(['%s'] * len(names))})"  # noqa: S608
    return start, settle, insert


def start_clause() -> str:
    """The beginning of the statement that starts an attempt. `start_values` makes its values."""
    quote = connection.ops.quote_name
    column = {field.name: quote(str(field.column)) for field in SchedulerExecution._meta.concrete_fields}
    return (
        f"UPDATE {quote(SchedulerExecution._meta.db_table)} "  # noqa: S608
        f"SET {column['state']} = '{State.RUNNING.value}', {column['attempt']} = %s, "
        f"{column['started_at']} = %s, {column['consumer']} = %s, {column['wake_at']} = %s, "
        f"{column['pid']} = NULL, {column['finished_at']} = NULL, {column['progress']} = '', "
        # A consumer may start an attempt before the producer has marked its message as published.
        f"{column['published_at']} = COALESCE({column['published_at']}, %s)"
    )


def start_values(attempt: int, consumer: str, now: datetime, lease_until: datetime) -> list[Any]:
    """The values of `start_clause`."""
    at = adapting()
    return [attempt, at(now), consumer, at(lease_until), at(now)]


def waits() -> str:
    """The condition that an execution waits for its next attempt, and that its start deadline has not passed.

    Its one value is the time.
    """
    check_move(WAITING, State.RUNNING)
    states = ", ".join(f"'{state.value}'" for state in sorted(WAITING))
    quote = connection.ops.quote_name
    state, start_by, attempt = (quote(name) for name in ("state", "start_by", "attempt"))
    return f"{state} IN ({states}) AND ({start_by} IS NULL OR {start_by} > %s OR {attempt} > 0)"


def may_start(state: str, start_by: datetime | None, attempt: int, now: datetime) -> bool:
    """The same as `waits`, for a row that was read."""
    return state in WAITING and (start_by is None or attempt > 0 or start_by > now)


def adapted(instant: datetime | None) -> Any:
    """An instant as a parameter of a statement."""
    return _adapted(connection.vendor, connection.timezone, instant)


def adapting() -> Callable[[datetime | None], Any]:
    """The function `adapted` for many instants: it does not look at the connection each time."""
    return partial(_adapted, connection.vendor, connection.timezone)


@lru_cache(maxsize=256)
def _adapted(_vendor: str, _zone: tzinfo | None, instant: datetime | None) -> Any:
    """An instant as a parameter of a statement. All rows that a turn writes have the same few instants."""
    return connection.ops.adapt_datetimefield_value(instant) if instant is not None else None


def start(execution_id: int, attempt: int, key: str, consumer: str, now: datetime, lease_until: datetime) -> bool:
    """Start attempt `attempt` if the execution waits and its last attempt is `attempt - 1`.

    Args:
        key: the execution key of the message. The row must have the same key. If the database was set up anew or
            restored, an old message may contain the id of a new row.

    Returns:
        Whether the attempt was started. If not, the message is a copy, or the execution no longer waits.
    """
    values = [*start_values(attempt, consumer, now, lease_until), execution_id, attempt - 1, key, adapted(now)]
    with connection.cursor() as cursor:
        cursor.execute(_statements(connection.vendor)[0], values)
        return bool(cursor.rowcount == 1)


AttemptValues = list[Any]
"""The values of an attempt's row, in the order of the statement's columns."""


def settle(
    ended: Ended,
    following: Next,
    entry: Entry,
    now: datetime,
    lease_before: datetime = DISTANT_FUTURE,
    attempts: list[AttemptValues] | None = None,
) -> bool:
    """Record the end of an attempt in the rows of the execution and the attempt.

    Call this function in a transaction, so that the database writes either both rows or none.

    Args:
        lease_before: settle only if the lease ends at or before this instant. With this argument, a sweep does not
            settle an attempt whose lease has just been renewed.
        attempts: if given, the attempt's row is not written but added to this list. The caller then passes the list to
            `record_attempts` in the same transaction, so that one statement writes the rows of many attempts.

    Returns:
        Whether the attempt was settled. If not, nothing was written: another process has settled or taken over the
        attempt, or the lease was renewed.

    Raises:
        ValueError: a running execution may not move to the state of `following`.
    """
    check_move([State.RUNNING], following.state)
    at = adapting()
    _, update, insert = _statements(connection.vendor)
    finished_at = at(now) if following.state not in WAITING else None
    state = [following.state.value, at(following.wake_at), finished_at, ended.pid, ended.progress]
    error = [following.error_class, following.error_message, following.fingerprint, following.reason]
    error.append(at(following.deferred_at))
    counted = [
        following.uncounted,
        following.snoozes,
        1 if following.keeps_published else 0,
        at(following.published_at),
    ]
    condition = [ended.execution_id, ended.attempt, at(lease_before)]
    with connection.cursor() as cursor:
        cursor.execute(update, [*state, *error, *counted, *condition])
        if cursor.rowcount != 1:
            return False
        values = attempt_values(ended, entry, now, at)
        if attempts is None:
            cursor.execute(insert, values)
        else:
            attempts.append(values)
    return True


def attempt_values(ended: Ended, entry: Entry, now: datetime, at: Callable[[datetime | None], Any]) -> AttemptValues:
    """The values of the attempt's row.

    Args:
        at: makes a parameter of an instant, see `adapting`.
    """
    who = [ended.execution_id, ended.attempt, at(ended.started_at), at(now), ended.consumer, ended.pid]
    who += [ended.release, ended.cpu_ms, ended.peak_memory_kb, *(ended.batch or NO_BATCH)]
    own = vars(entry) | {"retry_at": at(entry.retry_at)}
    return [*who, *own.values()]


def record_attempts(attempts: list[AttemptValues]) -> None:
    """Write the rows that `settle` has added to this list."""
    if not attempts:
        return
    insert = _statements(connection.vendor)[2]
    with connection.cursor() as cursor:
        if len(attempts) == 1:
            cursor.execute(insert, attempts[0])  # on MySQL and MariaDB, `executemany` would parse the statement first
        else:
            cursor.executemany(insert, attempts)
