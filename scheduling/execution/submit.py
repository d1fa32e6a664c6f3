"""Inserts the executions that code asks for (`scheduling.api`). No schedule stands behind them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db import IntegrityError, OperationalError, connection, transaction
from pydantic import BaseModel

from scheduling.broker import Broker
from scheduling.core import json_bounds
from scheduling.core.database_errors import Verdict
from scheduling.core.keys import LONGEST_TEXT, stored_key
from scheduling.core.lifecycle import OPEN_STATES, WAITING, State, Trigger
from scheduling.execution.insert import ROWS_PER_INSERT
from scheduling.execution.publish import initial_columns, publish
from scheduling.handlers.params import ParamsInvalid, merge, validate
from scheduling.handlers.params_model import stored
from scheduling.handlers.registry import find
from scheduling.handlers.targets import sync_targets, target_model
from scheduling.models import SchedulerExecution
from scheduling.processes.database import verdict_of
from scheduling.processes.guard import guard
from scheduling.processes.identity import container_id

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
    """

    handler: str
    params: Mapping[str, Any] | BaseModel = field(default_factory=dict)
    at: datetime | None = None
    key: str = ""
    unique: Unique = ""
    replaces: bool = False
    by: str = ""


@dataclass(frozen=True)
class _Target:
    pk: int
    params: Mapping[str, Any]


def submit(asked: Sequence[Asked], broker: Broker, now: datetime) -> list[tuple[int, bool]]:
    """Insert executions, in the transaction of the caller. They are published when it commits.

    Returns:
        For each run its execution's id, and whether the execution is new. It is not if the key refused a second one.

    Raises:
        UnknownHandler: no worker is registered under this name in this process.
        ParamsInvalid: the params do not fit the params model.
        ValueError: the params cannot be stored, the instant is naive or too late, or the key is too long.
        Held: nothing may be claimed now (`processes.guard`).
    """
    targets = _targets({one.handler for one in asked})
    if connection.in_atomic_block:
        return _insert(asked, targets, broker, now)
    for _ in range(TRIES - 1):
        try:
            return _insert(asked, targets, broker, now)
        except OperationalError as error:
            # Callers that find a key free at once may lock its entry crosswise. The server has ended one of them.
            if verdict_of(error) is not Verdict.CONFLICT:
                raise
    return _insert(asked, targets, broker, now)


def _insert(
    asked: Sequence[Asked], targets: Mapping[str, _Target], broker: Broker, now: datetime
) -> list[tuple[int, bool]]:
    rows = [_row(one, targets[one.handler], broker, now) for one in asked]
    with transaction.atomic():
        guard.check(broker, may_claim=True)
        free = [row for row in rows if row.key is None]
        _insert_many(free, now)
        found = {id(row): (row.pk, True) for row in free}
        for one, row in zip(asked, rows, strict=True):
            if row.key is not None:
                found[id(row)] = _insert_with_key(one, row)
        # A sweep publishes the runs that start later.
        due = [row for row in rows if found[id(row)][1] and row.scheduled_at <= now]
        transaction.on_commit(lambda: publish(due, broker))
    return [found[id(row)] for row in rows]


def _targets(names: set[str]) -> dict[str, _Target]:
    for name in names:
        find("worker", name)
    found = _stored(names)
    if len(found) < len(names):
        sync_targets()  # the handler is new, and `migrate` has not run since
        found = _stored(names)
    return found


def _stored(names: set[str]) -> dict[str, _Target]:
    rows = target_model("worker")._default_manager.filter(name__in=names)
    return {name: _Target(pk, params) for name, pk, params in rows.values_list("name", "pk", "params")}


def _row(asked: Asked, target: _Target, broker: Broker, now: datetime) -> SchedulerExecution:
    key = _checked_key(asked)
    columns = initial_columns(now, broker.embedded)
    if asked.at is not None:
        _check_instant(asked.at)
        if asked.at > now:
            columns["wake_at"] = asked.at
    return SchedulerExecution(
        execution_key=f"code-{key or uuid.uuid4()}", key=key, scheduled_at=max(asked.at or now, now),
        trigger=Trigger.CODE.value, requested_by=asked.by[:150], type="worker", target_id=target.pk,
        target_name=asked.handler, params=_checked_params(asked, target), executed_at=now, container_id=container_id(),
        queue=SchedulerExecution.Queue.MAIN, **columns,
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


def _checked_params(asked: Asked, target: _Target) -> dict[str, Any]:
    given = asked.params
    params = stored(given) if isinstance(given, BaseModel) else given
    if not isinstance(params, Mapping):
        raise ParamsInvalid({"": "Parameters are a JSON object or an instance of the params model."})
    own = _storable(asked.handler, params)
    validate(find("worker", asked.handler), merge(target.params if isinstance(target.params, dict) else {}, own))
    return own


def _storable(handler: str, params: Mapping[str, Any]) -> dict[str, Any]:
    try:
        own: dict[str, Any] = json.loads(json.dumps(dict(params)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The parameters of {handler!r} are not JSON: {error}") from None
    if found := json_bounds.problem(own):
        raise ValueError(f"The JSON of the parameters of {handler!r} {found}")
    return own


def _insert_many(rows: Sequence[SchedulerExecution], now: datetime) -> None:
    if len(rows) == 1:
        rows[0].save(force_insert=True)
        return
    newest = None
    if rows and not connection.features.can_return_rows_from_bulk_insert:
        newest = SchedulerExecution.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    SchedulerExecution.objects.bulk_create(rows, batch_size=ROWS_PER_INSERT)
    if newest is not None:  # MySQL does not return the ids after a bulk insert
        made = SchedulerExecution.objects.filter(pk__gt=newest, container_id=container_id(), executed_at=now)
        ids = dict(made.values_list("execution_key", "pk"))
        for row in rows:
            row.pk = ids[row.execution_key]


def _insert_with_key(asked: Asked, row: SchedulerExecution) -> tuple[int, bool]:
    """Insert the row, or find the row that has its key. The unique key decides between callers at the same time."""
    for _ in range(TRIES):
        try:
            with transaction.atomic():
                row.pk = None
                row.save(force_insert=True)
        except IntegrityError:
            found = _standing(asked, row)
            if found is not None:
                return found, False
        else:
            return row.pk, True
    raise IntegrityError(f"The key {asked.key!r} was taken and given free {TRIES} times.")


def _standing(asked: Asked, row: SchedulerExecution) -> int | None:
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
    if asked.replaces and not _postponed(pk, row):
        holder.filter(pk=pk).update(key=None)
        return None
    return pk


def _postponed(pk: int, row: SchedulerExecution) -> bool:
    """Let a run that waits for its instant wait until the later instant, and run with the later params.

    Returns:
        Whether it did. A run that is due within the next second may be starting already, with its old params.
    """
    waits = SchedulerExecution.objects.in_state(State.CLAIMED, State.QUEUED).filter(pk=pk, attempt=0)
    columns = {"wake_at": row.wake_at, "scheduled_at": row.scheduled_at, "params": row.params}
    return bool(waits.filter(scheduled_at__gt=row.executed_at + CLOCKS_AGREE).update(**columns))
