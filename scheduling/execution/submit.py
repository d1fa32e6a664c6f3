"""Inserts the executions that code asks for (`scheduling.api`). No schedule stands behind them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import IntegrityError, connection, transaction
from pydantic import BaseModel

from scheduling.broker import Broker
from scheduling.core.headers import checked_headers
from scheduling.core.keys import LONGEST_TEXT, stored_key
from scheduling.core.lifecycle import OPEN_STATES, WAITING, State
from scheduling.execution.bulk_rows import insert_rows
from scheduling.execution.direct_insert import insert_directly, is_supported
from scheduling.execution.new_run import NewRun, shared_columns
from scheduling.execution.params_from_code import Target, checked_params, known_target, targets_of
from scheduling.execution.publish import initial_columns, publish, publish_soon
from scheduling.handlers.params import ParamsInvalid
from scheduling.handlers.queues import work_queue_of
from scheduling.models import SchedulerExecution
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.guard import guard

Unique = Literal["", "waiting", "running"]
"""How long a key refuses a second run: for ever, while the run waits, or until the run is over."""

_KEPT_BY: dict[str, frozenset[State]] = {"waiting": WAITING, "running": OPEN_STATES}

LAST_INSTANT_YEAR = 9998
"""Later instants have no local time in some zones."""

CLOCKS_AGREE = timedelta(seconds=1)
"""By more than this, the clocks of two processes do not differ: each follows the clock of the database server."""

TRIES = 5
"""How often an insert is tried that other callers with the same key are in the way of."""


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
    # Callers that find a key free at once may lock its entry crosswise. The server then ends one of them.
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
    (publish if confirm else publish_soon)(due, broker, checked)


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
            if row.key is not None and (found := _insert_with_key(one, row, shared)) is not None:
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
    if asked.unique and asked.unique not in _KEPT_BY:
        raise ValueError(f"unique is 'waiting' or 'running', not {asked.unique!r}.")
    return stored_key(asked.key)


def _check_instant(at: datetime) -> None:
    if at.tzinfo is None or at.utcoffset() is None:
        raise ValueError(f"at= needs a time zone: {at!r}. Use django.utils.timezone.make_aware.")
    if at.year > LAST_INSTANT_YEAR:
        raise ValueError(f"at= is after the year {LAST_INSTANT_YEAR}: {at!r}.")


def _insert_with_key(asked: Asked, row: NewRun, shared: Mapping[str, Any]) -> int | None:
    """Insert the row, or find the row that has its key. The unique key decides between callers at the same time.

    Returns:
        The id of the row that has the key; None if the row was inserted.
    """
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                insert_rows([row], shared)
        except IntegrityError:
            found = _standing(asked, row, shared["executed_at"])
            if found is not None:
                return found
        else:
            return None
    raise IntegrityError(f"The key {asked.key!r} was taken and given free {TRIES} times.")


def _standing(asked: Asked, row: NewRun, now: datetime) -> int | None:
    """The id of the execution that has the key; None if the key is free now."""
    holder = SchedulerExecution.objects.filter(key=row.key)
    found = holder.values_list("pk", "state").first()
    if found is None:
        return None
    pk, state = found
    kept = _KEPT_BY.get(asked.unique)
    if kept is not None and state not in kept:
        holder.filter(pk=pk).exclude(state__in=[str(one) for one in kept]).update(key=None)
        return None
    if asked.replaces and not _postponed(pk, row, now):
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
