"""Publishes claimed executions, records the broker's confirms, and parks the messages of failed executions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol

from django.db import DatabaseError, connection, transaction
from django.utils import timezone as clock

from scheduling.broker import Broker, BrokerError, BrokerUnavailable
from scheduling.core.lifecycle import CLAIM_GRACE, State, check_move
from scheduling.core.messages import FailedMessage
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.figures import figures
from scheduling.processes.guard import guard

log = get_logger(__name__)


class Published(Protocol):
    """An execution, or a row that has the columns that its message needs."""

    @property
    def queue(self) -> str: ...


def initial_columns(now: datetime, embedded: bool) -> dict[str, Any]:
    """The columns of a new row that waits.

    If the executions table is the queue (`embedded`), the row is queued at once. Otherwise the row stays claimed until
    the broker confirms its message. If no confirm comes, a sweep publishes the row again at `wake_at`.
    """
    if embedded:
        return {"state": State.QUEUED.value, "wake_at": now, "published_at": now}
    return {"state": State.CLAIMED.value, "wake_at": now + CLAIM_GRACE}


def publish(executions: Sequence[Published], broker: Broker, checked: bool = False) -> int:
    """Publish claimed rows. Returns how many rows were published.

    If the broker confirms the message of a row, the row becomes queued. Without a confirm the row stays claimed, and a
    sweep publishes it again. If the executions table is the queue, all rows already count as published.

    While this process must hold (`processes.guard`), nothing is published.

    Args:
        checked: whether the statement that has committed the rows, a moment ago, has found that it need not hold.
    """
    if broker.embedded or not executions:
        return len(executions)
    confirmed = send(executions, broker, checked)
    try:
        again_after_conflicts(lambda: mark_published(confirmed, clock.now()))
    except DatabaseError as error:
        if connection.in_atomic_block:
            raise
        # The rows are committed and their messages are out. If this raised an error, the caller would ask for the runs
        # again. A second message of a row starts nothing.
        count = len(confirmed)
        log.warning("The confirms of %s runs are not recorded, so a sweep publishes them again: %s", count, error)
    return len(confirmed)


def publish_soon(executions: Sequence[Published], broker: Broker, checked: bool = False) -> None:
    """Publish claimed rows without waiting for the broker. The rows stay claimed.

    A consumer starts a claimed row as it starts a queued one. If none has after CLAIM_GRACE, a sweep publishes the row
    again.
    """
    if broker.embedded or not executions or (not checked and guard.must_wait(broker, "Publishing waits")):
        return
    for queue in {execution.queue for execution in executions}:
        messages = [message_of(execution) for execution in executions if execution.queue == queue]
        figures.publishes += len(messages)
        broker.send(messages, queue)


def send(executions: Sequence[Published], broker: Broker, checked: bool = False) -> set[int]:
    """Publish the messages of the rows' next attempts. Returns the ids of the rows whose message is confirmed.

    While this process must hold (`processes.guard`), nothing is published. See `publish` for `checked`.
    """
    if not checked and guard.must_wait(broker, "Publishing waits"):
        return set()
    confirmed: set[int] = set()
    for queue in {execution.queue for execution in executions}:
        messages = [message_of(execution) for execution in executions if execution.queue == queue]
        figures.publishes += len(messages)
        try:
            confirmed |= broker.publish(messages, queue)
        except BrokerUnavailable as error:
            # The transport has already logged the outage. The rows stay claimed, and sweeps publish them again after a
            # few seconds.
            log.debug("Publishing failed and will be tried again: %s", error, extra={"count": len(messages)})
        except BrokerError as error:
            log.warning("Publishing failed and will be tried again: %s", error, extra={"count": len(messages)})
    figures.confirms += len(confirmed)
    return confirmed


def mark_published(ids: Iterable[int], now: datetime) -> int:
    """Set the state of confirmed rows from claimed to queued. A row that is no longer claimed does not change.

    Consumers start some of these rows meanwhile, several in one transaction. All processes lock the rows in the order
    of the primary key, so that no two of them wait for each other.
    A row that is put off is claimed with `published_at`: a consumer has answered its message before the confirm came.

    Returns:
        How many rows changed.
    """
    check_move([State.CLAIMED], State.QUEUED)
    keys = list(ids)
    if len(keys) == 1:  # one row is found by its key and locked alone
        with connection.cursor() as cursor:
            statement = _mark_one(connection.vendor, connection.in_atomic_block or not connection.get_autocommit())
            cursor.execute(statement, [*[connection.ops.adapt_datetimefield_value(now)] * 2, keys[0]])
            return int(cursor.rowcount)
    rows = SchedulerExecution.objects.filter(pk__in=keys).order_by("pk")
    with transaction.atomic():
        # Without a condition on the state: with it, MariaDB could lock the rows in the order of the index of states.
        locked = rows.select_for_update().values_list("pk", "state", "published_at")
        keys = [pk for pk, state, published_at in locked if state == State.CLAIMED and published_at is None]
        claimed = SchedulerExecution.objects.filter(pk__in=keys)
        return claimed.update(state=State.QUEUED.value, published_at=now, wake_at=now)


@lru_cache(maxsize=8)
def _mark_one(vendor: str, in_transaction: bool) -> str:
    """A statement of its own, because each run from code needs it, and the ORM would take longer than the database.

    With PostgreSQL, the commit of this statement does not wait for the disk or a standby. A server that crashes in the
    next second forgets the mark, so a sweep publishes the row again, and the start ignores the second message.

    Args:
        in_transaction: whether the caller has a transaction, whose commit must wait.
    """
    quote = connection.ops.quote_name
    no_wait = "AND set_config('synchronous_commit', 'off', true) = 'off'"
    return (
        f"UPDATE {quote(SchedulerExecution._meta.db_table)} "  # noqa: S608 (names of columns)
        f"SET {quote('state')} = '{State.QUEUED.value}', {quote('published_at')} = %s, {quote('wake_at')} = %s "
        f"WHERE {quote('id')} = %s AND {quote('state')} = '{State.CLAIMED.value}' AND {quote('published_at')} IS NULL "
        f"{no_wait if vendor == 'postgresql' and not in_transaction else ''}"
    )


def park(execution: SchedulerExecution, broker: Broker, now: datetime, reason: str, retries: int) -> bool:
    """Park the message of a failed row. If the broker confirms the message, the row records the confirm.

    Args:
        retries: the retry count of the parked message.

    Returns:
        Whether the broker confirmed the message.
    """
    message = replace(message_of(execution), attempt=execution.attempt)
    if not broker.dead_letter(None, FailedMessage(message, execution.finished_at or now, reason, retries), reason):
        return False
    mark_parked(execution.pk, execution.attempt, now)
    return True


def mark_parked(pk: int, attempt: int, now: datetime) -> None:
    """Set `published_at` of a failed row to `now`, because the broker has confirmed the parked message."""
    SchedulerExecution.objects.filter(pk=pk, attempt=attempt, state=State.FAILED.value).update(published_at=now)


def context_of(execution: SchedulerExecution) -> dict[str, Any]:
    """The context of log lines about an execution."""
    return {
        "type": execution.type,
        "id": execution.target_id,
        "scheduler_id": execution.scheduler_id,
        "key": execution.execution_key,
    }
