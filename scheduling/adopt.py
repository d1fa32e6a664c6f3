"""Adopt: a message that no row stands behind gets one, and from then on a message of ours.

Two come here: a stranger's, with the seeds' four fields; and one that somebody moved out of the
failed queue by hand. Each becomes a claimed row, published like any other, and is acknowledged.
So start, settle, retries and sweeps know only our own messages, and a crash in between repeats
nothing that has an identity.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from scheduling.broker import Broker, Delivery
from scheduling.core.lifecycle import Trigger
from scheduling.core.messages import TaskMessage
from scheduling.core.occurrences import manual_key
from scheduling.dispatch import context_of, publish, run_again, target_names, waiting
from scheduling.identity import container_id
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.targets import target_model

log = get_logger(__name__)

KEY_LENGTH = 64


def is_strange(message: TaskMessage) -> bool:
    """Whether a message must be adopted before it can start."""
    return message.execution_id is None or message.parked


def message_key(message_id: str) -> str:
    """The execution key of a foreign message: the same for each of its copies, at most 64 characters."""
    if not message_id:
        return manual_key(uuid.uuid4())
    key = f"message-{message_id}"
    if len(key) <= KEY_LENGTH:
        return key
    return f"message-#{hashlib.sha256(message_id.encode(errors='replace')).hexdigest()[:48]}"


def adopt(delivery: Delivery, queue: str, broker: Broker, now: datetime) -> SchedulerExecution | None:
    """Give a strange message its row, publish that, and acknowledge; None for a copy of one that had its turn.

    Raises:
        django.db.DatabaseError: nothing has happened.
    """
    message = delivery.message
    with transaction.atomic():
        # Copies of one message may reach two consumers. A unique key does not arbitrate between rows
        # without a scheduler; the target's lock does. (SQLite's transaction is exclusive by itself.)
        target = target_model(message.type)._default_manager.filter(pk=message.id)
        list(target.select_for_update().values_list("pk"))
        row = _known(message, delivery.message_id)
        if row is None:
            row = _insert(delivery, queue, broker, now)
        elif not _taken_back(row, message, broker, now):
            log.info("Message ignored: its execution has had its turn", extra=context_of(row))
            row = None
    if row is not None:
        publish([row], broker)
    broker.acknowledge(delivery)
    return row


def _known(message: TaskMessage, message_id: str) -> SchedulerExecution | None:
    rows = SchedulerExecution.objects.select_for_update()
    if message.execution_id is not None:
        # The key too: after a database was set up anew, old messages meet new rows of the same numbers.
        row = rows.filter(pk=message.execution_id, execution_key=message.execution_key).first()
        if row is not None:
            return row
    if not message_id:
        return None
    return rows.filter(execution_key=message_key(message_id), trigger=Trigger.MESSAGE.value).first()


def _taken_back(row: SchedulerExecution, message: TaskMessage, broker: Broker, now: datetime) -> bool:
    """A message out of the failed queue takes its row out of the inbox; a second copy of it does nothing."""
    if not message.parked:
        return False
    if message.execution_id is not None and message.attempt != row.attempt:
        return False  # it tells of an earlier failure than the row does
    if not row.type:  # parked as unreadable, and this consumer reads it
        SchedulerExecution.objects.filter(pk=row.pk).update(**columns_of(message))
    if not run_again(row.pk, broker, "Its message was moved back from the failed queue.", now, attempt=row.attempt):
        return False
    row.refresh_from_db()
    log.info("Republished: its message was moved back from the failed queue", extra=context_of(row))
    return True


def columns_of(message: TaskMessage) -> dict[str, Any]:
    """What a row takes over from a message that no row of ours was published for."""
    scheduler_id, target = message.scheduler_id, (message.type, message.id)
    if scheduler_id is not None and not Scheduler.objects.filter(pk=scheduler_id).exists():
        log.warning("A message names schedule %s, which does not exist; it stands without one", scheduler_id)
        scheduler_id = None
    return {
        "scheduler_id": scheduler_id,
        "type": message.type,
        "target_id": message.id,
        "target_name": target_names([target]).get(target, ""),
        "params": message.params,
    }


def _insert(delivery: Delivery, queue: str, broker: Broker, now: datetime) -> SchedulerExecution | None:
    message = delivery.message
    row = SchedulerExecution(
        execution_key=message_key(delivery.message_id), trigger=Trigger.MESSAGE.value,
        scheduled_at=message.scheduled_at or now, executed_at=now, container_id=container_id(), queue=queue,
        # Attempts that were made elsewhere count as retries here.
        attempt=delivery.earlier, **columns_of(message), **waiting(now, broker.embedded),
    )  # fmt: skip
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        log.info("Message ignored: it is on record already", extra=context_of(row))
        return None
    log.info("A message from outside became an execution", extra=context_of(row))
    return row
