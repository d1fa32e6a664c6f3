"""Turns foreign messages, and parked messages that an operator moved by hand, into executions.

A foreign message comes from another client, and has the four fields of the original contract. A parked message is
handled in the same way if an operator has moved it out of the failed queue by hand.

Each message gets an execution row, unless it already has one. The row is published like any other row. After that, the
message is acknowledged. Therefore start, settle, retries and sweeps handle only messages that this project published.

If the process crashes before the acknowledgement, the broker delivers the message again. A message that has a message
id does not run twice.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from scheduling.broker import Broker, Delivery
from scheduling.core.inbox_sentences import MOVED_BACK
from scheduling.core.keys import stored_key
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.messages import TaskMessage
from scheduling.core.occurrences import manual_key
from scheduling.core.overlap import Turn
from scheduling.execution.blocked_runs import STARTS, entered, entry_columns
from scheduling.execution.death_records import record_deaths
from scheduling.execution.insert import note_skipped
from scheduling.execution.publish import context_of, publish
from scheduling.execution.run_now import overlap_problem, requeue_failed
from scheduling.handlers.targets import target_model, target_names
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.policies import overlap
from scheduling.processes.database import locking
from scheduling.processes.guard import guard
from scheduling.processes.identity import container_id

log = get_logger(__name__)


def is_foreign(message: TaskMessage) -> bool:
    """Whether the message must go through `adopt` before an attempt can start."""
    return message.execution_id is None or message.parked


def message_key(message_id: str) -> str:
    """The execution key of a foreign message, at most 64 characters.

    Copies of a message have the same message id, and therefore the same key. Without a message id, the key is random.
    An id that is long, or that a database could take for another one, is replaced by its hash.
    """
    if not message_id:
        return manual_key(uuid.uuid4())
    return f"message-{stored_key(message_id)}"


def adopt(delivery: Delivery, queue: str, broker: Broker, now: datetime) -> SchedulerExecution | None:
    """Make or find the row of a foreign message, publish the row, and acknowledge the message.

    Returns:
        The row that was published; None if the message is a copy and was ignored, or if its execution is left out or
        waits for its turn.

    Raises:
        django.db.DatabaseError: the database failed, and the message is not acknowledged.
        Held: nothing may be started now (`processes.guard`), and the message is not acknowledged.
    """
    guard.check(broker)
    message = delivery.message
    with transaction.atomic():
        # Two consumers may receive copies of one message. If the message names no schedule, the unique key does not
        # refuse a second row. So the row of the target is locked. (On SQLite the whole transaction is exclusive.)
        target = target_model(message.type)._default_manager.filter(pk=message.id)
        list(locking(target).values_list("pk"))
        # Every door locks the schedule before the execution. In another order, two of them could wait for each other.
        overlap.locked(message.scheduler_id)
        row = _known(message, delivery.message_id)
        if row is None:
            let_in = _insert(delivery, queue, broker, now)
        elif _taken_back(row, message, broker, now):
            let_in = [row]
        else:
            log.info("Message ignored: its execution has had its turn", extra=context_of(row))
            let_in = []
    publish(let_in, broker)
    broker.acknowledge(delivery)
    return let_in[0] if let_in else None


def _known(message: TaskMessage, message_id: str) -> SchedulerExecution | None:
    rows = SchedulerExecution.objects.select_for_update()
    if message.execution_id is not None:
        # The execution key and the target are compared too. If the database was set up anew, an old message may contain
        # the id of a new row.
        row = rows.filter(pk=message.execution_id).first()
        own = (message.execution_key, message.type, message.id)
        if row is not None and (row.execution_key, row.type, row.target_id or 0) == own:
            return row
    if not message_id:
        return None
    return rows.filter(execution_key=message_key(message_id), trigger=Trigger.MESSAGE.value).first()


def _taken_back(row: SchedulerExecution, message: TaskMessage, broker: Broker, now: datetime) -> bool:
    """Requeue the failed execution of a message that was moved out of the failed queue.

    Returns False if the message is a copy, or if the execution was already requeued or has failed again.
    """
    if not message.parked:
        return False
    if message.execution_id is not None and message.attempt != row.attempt:
        return False  # the row has failed again since this message was parked
    if not row.type:  # the message was parked as unreadable, but this version can read it
        SchedulerExecution.objects.filter(pk=row.pk).update(**columns_of(message))
    reason = MOVED_BACK.format()
    if not requeue_failed(row.pk, broker, reason, now, row.scheduler_id, attempt=row.attempt):
        # The message has left the failed queue. If the row stays failed, the next sync pass parks a new message.
        if overlap_problem(row.pk):
            SchedulerExecution.objects.filter(pk=row.pk, state=State.FAILED.value).update(published_at=None)
        return False
    row.refresh_from_db()
    log.info("Republished: its message was moved back from the failed queue", extra=context_of(row))
    return True


def columns_of(message: TaskMessage) -> dict[str, Any]:
    """The columns that the row of a foreign message takes from the message.

    A message that names no schedule has no group. One that names a schedule has this schedule's group: its params and
    its output are those of the schedule, so a user who may not see the schedule may not see them either. The group in a
    message is never used, because any client could write it.
    """
    scheduler_id, target = message.scheduler_id, (message.type, message.id)
    group_id: int | None = None
    if scheduler_id is not None:
        found = list(Scheduler.objects.filter(pk=scheduler_id).values_list("group_id", flat=True))
        if found:
            group_id = found[0]
        else:
            log.warning("A message names schedule %s, which does not exist; it stands without one", scheduler_id)
            scheduler_id = None
    return {
        "scheduler_id": scheduler_id,
        "group_id": group_id,
        "type": message.type,
        "target_id": message.id,
        "target_name": target_names([target]).get(target, ""),
        "params": message.params,
        "headers": message.headers or None,
    }


def _insert(delivery: Delivery, queue: str, broker: Broker, now: datetime) -> list[SchedulerExecution]:
    """Make the row of a message. Returns the executions that were let in, which the caller publishes."""
    message = delivery.message
    columns = columns_of(message)
    # A message that names a schedule which runs alone is one more way to start this schedule.
    scheduler = overlap.locked(columns["scheduler_id"])
    entry = overlap.enter(scheduler) if scheduler is not None else STARTS
    policy = scheduler.overlap if scheduler is not None else ""
    if scheduler is not None and scheduler.stay_alive:
        queue = SchedulerExecution.Queue.STANDALONE.value
    row = SchedulerExecution(
        execution_key=message_key(delivery.message_id), trigger=Trigger.MESSAGE.value,
        scheduled_at=message.scheduled_at or now, executed_at=now, container_id=container_id(), queue=queue,
        # The retries that the message had before this project received it count as attempts.
        attempt=delivery.earlier, **columns,
        **entry_columns(entry, policy, now, broker.embedded),
    )  # fmt: skip
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            record_deaths(row.pk, delivery.deaths)
    except IntegrityError:
        # If a row with this key exists, another copy of the message was recorded before. If no such row exists, the
        # database has refused a value of the message.
        if not SchedulerExecution.objects.filter(execution_key=row.execution_key, scheduler=row.scheduler_id).exists():
            raise
        log.info("Message ignored: it is on record already", extra=context_of(row))
        return []
    if entry.turn is Turn.LEFT_OUT:
        log.info("A message from outside started nothing: %s", entry.said, extra=context_of(row))
        note_skipped([row])
        return []
    log.info("A message from outside became an execution", extra=context_of(row))
    return entered(scheduler, row, entry, now, embedded=broker.embedded)
