"""Dispatch: publish what is claimed, mark what the broker confirmed; run a schedule now."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone as clock

from scheduling.broker import Broker, BrokerError, BrokerUnavailable
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.messages import FailedMessage, TaskMessage
from scheduling.core.occurrences import manual_key
from scheduling.identity import container_id
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.settlement import CLAIM_GRACE
from scheduling.targets import NAME_FIELD, target_model

log = get_logger(__name__)


def waiting(now: datetime, embedded: bool) -> dict[str, Any]:
    """Columns of a row that waits: queued already where the table is the queue, else claimed until
    the broker confirms, with the instant at which a sweep publishes again."""
    if embedded:
        return {"state": State.QUEUED.value, "wake_at": now, "published_at": now}
    return {"state": State.CLAIMED.value, "wake_at": now + CLAIM_GRACE}


def target_names(targets: Iterable[tuple[str, int | None]]) -> dict[tuple[str, int | None], str]:
    """The registered name behind each target; reminders go by their own name."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for type_, target_id in targets:
        if type_ and target_id is not None:
            wanted[type_].add(target_id)
    names: dict[tuple[str, int | None], str] = {}
    for type_, ids in wanted.items():
        column = NAME_FIELD.get(type_, "name")
        for pk, name in target_model(type_)._default_manager.filter(pk__in=ids).values_list("pk", column):
            names[type_, pk] = name
    return names


def message_of(execution: SchedulerExecution) -> TaskMessage:
    """The message that asks for the row's next attempt."""
    return TaskMessage(
        type=execution.type,
        id=execution.target_id or 0,
        scheduler_id=execution.scheduler_id,
        params=execution.params,
        execution_id=execution.pk,
        attempt=execution.attempt + 1,
        execution_key=execution.execution_key,
        scheduled_at=execution.scheduled_at,
        trigger=execution.trigger,
        retry_count=max(0, execution.attempt - execution.retry_base),
    )


def publish(executions: Sequence[SchedulerExecution], broker: Broker) -> int:
    """Publish claimed rows and mark those the broker confirmed; returns how many.

    What is not confirmed stays claimed: a sweep publishes it again.
    """
    if broker.embedded or not executions:
        return len(executions)
    confirmed: set[int] = set()
    for queue in {execution.queue for execution in executions}:
        messages = [message_of(execution) for execution in executions if execution.queue == queue]
        try:
            confirmed |= broker.publish(messages, queue)
        except BrokerUnavailable as error:
            # The transport itself has said so, once; rows wait as claimed, and this comes every few seconds.
            log.debug("Publishing failed and will be tried again: %s", error, extra={"count": len(messages)})
        except BrokerError as error:
            log.warning("Publishing failed and will be tried again: %s", error, extra={"count": len(messages)})
    now = clock.now()
    mark_published(confirmed, now)
    return len(confirmed)


def mark_published(ids: Iterable[int], now: datetime) -> int:
    """claimed -> queued, for what the broker confirmed; a row that has moved on is left alone."""
    return SchedulerExecution.objects.filter(pk__in=list(ids), state=State.CLAIMED.value).update(
        state=State.QUEUED.value, published_at=now, wake_at=now
    )


def park(execution: SchedulerExecution, broker: Broker, now: datetime, reason: str, retries: int) -> bool:
    """Have the broker keep the message of a failed row; whether it confirmed, which the row then says."""
    message = replace(message_of(execution), attempt=execution.attempt)
    if not broker.fail(None, FailedMessage(message, execution.finished_at or now, reason, retries), reason):
        return False
    mark_parked(execution.pk, execution.attempt, now)
    return True


def mark_parked(pk: int, attempt: int, now: datetime) -> None:
    """`published_at` of a failed row: when the broker confirmed the message that it keeps of it."""
    SchedulerExecution.objects.filter(pk=pk, attempt=attempt, state=State.FAILED.value).update(published_at=now)


def run_again(
    pk: int,
    broker: Broker,
    reason: str,
    now: datetime,
    params: Mapping[str, Any] | None = None,
    at: datetime | None = None,
    **seen: Any,
) -> bool:
    """failed -> claimed (queued where the table is the queue), with the retry count at zero; attempts go on
    counting. A compare-and-set: False when somebody was faster. Publishing is the caller's next step.

    Args:
        params: in place of those that it had.
        at: not before then. The embedded queue gives it out from that instant on; for a broker it stays
            claimed until then, when the sweep publishes it, and the caller must not.
        seen: further columns that must stand as the caller saw them.
    """
    columns = waiting(now, broker.embedded)
    columns.setdefault("published_at", None)
    if at is not None:
        columns["wake_at"] = at
    if params is not None:
        columns["params"] = dict(params)
    return bool(
        SchedulerExecution.objects.filter(pk=pk, state=State.FAILED.value, **seen).update(
            **columns, retry_base=F("attempt"), reason=reason, finished_at=None, cancel_requested_by=""
        )
    )


def run_now(
    scheduler: Scheduler,
    broker: Broker,
    by: str = "",
    params: dict[str, Any] | None = None,
    key: uuid.UUID | None = None,
    instead: Mapping[str, Any] | None = None,
    again: int | None = None,
) -> SchedulerExecution:
    """Run a schedule once, now, whatever its own times; it need not be active.

    Args:
        by: who asked, for the record.
        params: laid over the Scheduler's own, for this run only.
        key: the caller's idempotency key; a second call with it returns the first one's row.
        instead: in place of the Scheduler's own, for this run only; so that one can also be left out.
        again: the execution that this is a rerun of, for the record.

    Raises:
        ValueError: when the schedule has no target.
    """
    if not scheduler.target_type:
        raise ValueError("The schedule has no target: choose a report, a worker or a reminder.")
    now = clock.now()
    names = target_names([(scheduler.target_type, scheduler.target_id)])
    queue = SchedulerExecution.Queue.STANDALONE if scheduler.stay_alive else SchedulerExecution.Queue.MAIN
    own = scheduler.params if instead is None else instead
    execution = SchedulerExecution(
        scheduler=scheduler, execution_key=manual_key(key or uuid.uuid4(), again), scheduled_at=now,
        trigger=Trigger.MANUAL.value, requested_by=by[:150], type=scheduler.target_type,
        target_id=scheduler.target_id, target_name=names.get((scheduler.target_type, scheduler.target_id), ""),
        params={**own, **(params or {})}, executed_at=now, container_id=container_id(), queue=queue,
        **waiting(now, broker.embedded),
    )  # fmt: skip
    try:
        with transaction.atomic():
            execution.save(force_insert=True)
    except IntegrityError:
        return SchedulerExecution.objects.get(scheduler=scheduler, execution_key=execution.execution_key)
    transaction.on_commit(lambda: publish([execution], broker))
    return execution


def context_of(execution: SchedulerExecution) -> dict[str, Any]:
    """What log lines about an execution carry."""
    return {
        "type": execution.type,
        "id": execution.target_id,
        "scheduler_id": execution.scheduler_id,
        "key": execution.execution_key,
    }
