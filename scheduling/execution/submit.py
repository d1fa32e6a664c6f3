"""Inserts the executions that code asks for (`scheduling.api`). No schedule stands behind them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import DatabaseError, connection, transaction
from pydantic import BaseModel

from scheduling.broker import Broker
from scheduling.core.headers import checked_headers
from scheduling.core.keys import LONGEST_TEXT, stored_key
from scheduling.execution.bulk_rows import insert_rows
from scheduling.execution.direct_insert import insert_directly, is_supported
from scheduling.execution.keyed_insert import KEPT_BY, Unique, insert_with_key
from scheduling.execution.new_run import NewRun, shared_columns
from scheduling.execution.params_from_code import Target, checked_params, known_target, targets_of
from scheduling.execution.publish import initial_columns, publish, publish_soon
from scheduling.handlers.params import ParamsInvalid
from scheduling.handlers.queues import work_queue_of
from scheduling.logs import get_logger
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.guard import guard

log = get_logger(__name__)

LAST_INSTANT_YEAR = 9998
"""Later instants have no local time in some zones."""


@dataclass(frozen=True)
class Asked:
    """A run that code asks for.

    Args:
        handler: the name of a registered worker.
        params: the params of the run; an instance of the params model is allowed, too.
        at: the earliest start, aware; None: now.
        key: the caller's key; empty: none.
        unique: how long the key refuses a second run.
        replaces: whether a run with this key that waits takes over `at` and `params`.
        by: in whose name the run is asked for; it is recorded.
        headers: texts that accompany the run; its handler sees them as `run.headers`.
        queue: the queue of the run; empty: that of the handler.
        priority: `high`, `normal` or `low`; empty: that of the handler.
    """

    handler: str
    params: Mapping[str, Any] | BaseModel = field(default_factory=dict)
    at: datetime | None = None
    key: str = ""
    unique: Unique = ""
    replaces: bool = False
    by: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""
    priority: str = ""


def submit(asked: Sequence[Asked], broker: Broker, now: datetime, confirm: bool = True) -> list[tuple[int, bool]]:
    """Insert executions, in the transaction of the caller. They are published when it commits.

    Args:
        confirm: whether the publish waits until the broker has confirmed the messages.

    Returns:
        For each run its execution's id, and whether the execution is new. It is not if the key refused a second one.

    Raises:
        UnknownHandler: no worker is registered under this name in this process.
        ParamsInvalid: the params do not fit the params model.
        ValueError: the params or headers cannot be stored, the instant is naive or too late, the key is too long, or
            there can be no such queue or priority.
        Held: nothing may be claimed now (`processes.guard`).
    """
    if len(asked) == 1 and (pk := _submit_directly(asked[0], broker, now, confirm)) is not None:
        return [(pk, True)]
    targets = targets_of({one.handler for one in asked})
    # Callers that find a key free at once may lock its entry crosswise. The server then ends one of them. The publish
    # after the commit raises no such error, so what is committed is not repeated.
    return again_after_conflicts(lambda: _insert(asked, targets, broker, now, confirm))


def _submit_directly(asked: Asked, broker: Broker, now: datetime, confirm: bool) -> int | None:
    """Insert a run without a key with one statement (`execution.direct_insert`).

    Returns:
        The execution's id. None if nothing was inserted, because a row that it depends on has changed or was not read
        before. Then `_insert` reads it, and says what is wrong.
    """
    if asked.key or asked.unique or asked.replaces or not is_supported() or _commits_later():
        return None
    target, remembered = known_target(asked.handler), guard.remembered(broker)
    if target is None or remembered is None:
        return None
    try:
        new = _new_run(asked, target, now, initial_columns(now, broker.embedded)["wake_at"], str(uuid.uuid4()))
    except ParamsInvalid:
        return None  # the worker's default params may be others by now
    shared = shared_columns(now, broker.embedded)
    worked = again_after_conflicts(lambda: insert_directly(new, shared, target, remembered))
    if worked is None:
        return None
    guard.found(worked)
    if connection.in_atomic_block:
        transaction.on_commit(lambda: _publish([new], broker, now, confirm))
    else:
        _publish([new], broker, now, confirm, checked=True)
    return new.id


def _commits_later() -> bool:
    """Whether the connection waits for a `commit()` of the caller outside of `atomic` (autocommit is off)."""
    return not connection.in_atomic_block and not connection.get_autocommit()


def _publish(rows: Sequence[NewRun], broker: Broker, now: datetime, confirm: bool, checked: bool = False) -> None:
    """Publish the runs that are due. A sweep publishes those that start later."""
    due = [row for row in rows if row.scheduled_at <= now]
    try:
        (publish if confirm else publish_soon)(due, broker, checked)
    except DatabaseError as error:
        if connection.in_atomic_block:
            raise
        # The rows are committed. A caller that got this error would ask for the runs again.
        log.warning("%s runs are recorded, and a sweep publishes them: %s", len(due), error)


def _insert(
    asked: Sequence[Asked], targets: Mapping[str, Target], broker: Broker, now: datetime, confirm: bool
) -> list[tuple[int, bool]]:
    wake_at = initial_columns(now, broker.embedded)["wake_at"]
    made = uuid.uuid4()
    rows = [_new_run(one, targets[one.handler], now, wake_at, f"{made}-{n}") for n, one in enumerate(asked)]
    shared = shared_columns(now, broker.embedded)
    with transaction.atomic():
        guard.check(broker, may_claim=True)
        insert_rows([row for row in rows if row.key is None], shared)
        standing: dict[int, int] = {}
        for number, (one, row) in enumerate(zip(asked, rows, strict=True)):
            if row.key is not None and (found := insert_with_key(row, one.unique, one.replaces, shared)) is not None:
                standing[number] = found
        new = [row for number, row in enumerate(rows) if number not in standing] if standing else rows
        transaction.on_commit(lambda: _publish(new, broker, now, confirm))
    return [(standing.get(number, row.id), number not in standing) for number, row in enumerate(rows)]


def _new_run(asked: Asked, target: Target, now: datetime, wake_at: datetime, name: str) -> NewRun:
    """The row of a run.

    Args:
        wake_at: of a run that is due now.
        name: a name of its own for a run without a key.
    """
    key, params = _checked_key(asked), checked_params(asked.handler, asked.params, target)
    at = asked.at
    if at is not None:
        _check_instant(at)
    later = at is not None and at > now
    return NewRun(
        execution_key=f"code-{key or name}", key=key, scheduled_at=at if at is not None and later else now,
        wake_at=at if at is not None and later else wake_at, requested_by=asked.by[:150], target_id=target.pk,
        target_name=asked.handler, params=params, headers=checked_headers(asked.headers) or None,
        queue=work_queue_of("worker", asked.handler, asked.queue, asked.priority),
    )  # fmt: skip


def _checked_key(asked: Asked) -> str | None:
    if not asked.key:
        if asked.unique or asked.replaces:
            raise ValueError("unique= and debounce= need a key=.")
        return None
    if len(asked.key) > LONGEST_TEXT:
        raise ValueError(f"The key has {len(asked.key):,} characters; at most {LONGEST_TEXT:,} are allowed.")
    if asked.unique and asked.unique not in KEPT_BY:
        raise ValueError(f"unique is 'waiting' or 'running', not {asked.unique!r}.")
    return stored_key(asked.key)


def _check_instant(at: datetime) -> None:
    if at.tzinfo is None or at.utcoffset() is None:
        raise ValueError(f"at= needs a time zone: {at!r}. Use django.utils.timezone.make_aware.")
    if at.year > LAST_INSTANT_YEAR:
        raise ValueError(f"at= is after the year {LAST_INSTANT_YEAR}: {at!r}.")
