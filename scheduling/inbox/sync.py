"""Makes the broker's failed queue and the rows of the failed inbox agree.

A sync pass reads the whole queue without acknowledging the messages. Then the pass corrects four kinds of differences:

- A message has no row. The pass creates a row.
- The broker gave up delivering a message. The pass marks the message's execution as failed.
- The broker never confirmed the parked message of a failed row. The pass parks the message again.
- An operator has republished or discarded an execution. The pass removes the execution's message.

Only one process at a time can hold the queue.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduling.broker import Broker, BrokerError, FailedQueueBusy, Parked, QueueUnavailable
from scheduling.core.lifecycle import WAITING, State, Trigger
from scheduling.core.messages import DecodeError, TaskMessage, decode
from scheduling.execution.foreign import message_key
from scheduling.execution.publish import mark_parked, park
from scheduling.inbox.delivery_limit import GivenUp, give_up
from scheduling.inbox.parked_rows import in_chunks, limit_reached, make_rows
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.processes.guard import guard

log = get_logger(__name__)

PARK_BATCH = 500
PARK_GRACE = timedelta(seconds=30)
"""How long the broker may take to confirm the message of a new failure. After this time, a sync pass parks the message
again."""

BUSY_TRIES, BUSY_SECONDS = 5, 0.3

LEFT = "The failed queue may be another deployment's and is left as it is"

QueueAndRows = tuple[int, int]
"""The number of messages in the failed queue, and the number of failed rows with a parked message. If messages were
removed by hand, the two numbers stay different. Another sync pass is then useful only after one number has changed."""


@dataclass
class Synced:
    """The result of a sync pass.

    Args:
        rows: how many rows were created or marked as failed.
        parked: how many messages were parked.
        removed: how many messages were removed from the queue.
        busy: whether another process held the queue.
        standing: the counts before the pass; None if the pass did not compare them.
    """

    rows: int = 0
    parked: int = 0
    removed: int = 0
    busy: bool = False
    standing: QueueAndRows | None = None


@dataclass
class _Sorted:
    """The messages of the queue, sorted by what the pass must do with them.

    Args:
        strange: messages without a row.
        gave_up: messages that the broker gave up delivering.
        remove: messages that the pass removes.
        present: the execution id and the attempt of each readable message.
    """

    strange: list[Parked] = field(default_factory=list)
    gave_up: list[GivenUp] = field(default_factory=list)
    remove: list[Parked] = field(default_factory=list)
    present: set[tuple[int | None, int]] = field(default_factory=set)


def sync(broker: Broker, now: datetime, *, only_if_changed: bool = False, seen: QueueAndRows | None = None) -> Synced:
    """Make one sync pass. Producers and the page of the failed inbox call this function.

    Args:
        only_if_changed: skip the pass if the number of messages in the queue equals the number of failed rows with a
            parked message. The pass is not skipped if a row has waited longer than PARK_GRACE for its message to be
            parked.
        seen: the two counts that an earlier pass returned as `standing`. With `only_if_changed`, the pass is also
            skipped if both counts are still the same.

    Raises:
        BrokerError: the broker cannot be reached.
    """
    done = Synced()
    if not broker.has_failed_queue or guard.must_wait(broker, LEFT):
        return done
    failed = SchedulerExecution.objects.filter(state=State.FAILED.value)
    unparked = failed.filter(published_at=None, finished_at__lt=now - PARK_GRACE).exclude(type="")
    count = _counted(broker)
    if not unparked.exists():
        if count == 0:
            return done
        if only_if_changed:
            rows = failed.filter(published_at__isnull=False).count()
            done.standing = (count, rows)
            if count == rows or done.standing == seen:
                return done
    try:
        with broker.failed_queue() as session:
            found = _sort(session.messages)
            session.remove(found.remove)
            nameless = [message for message in found.strange if not message.message_id]
            named = [message for message in found.strange if message.message_id] + session.identify(nameless)
            done.removed = len(found.remove)
            done.rows = give_up(found.gave_up, now) + make_rows(named, now)
            done.parked = _park_missing(unparked.order_by("pk")[:PARK_BATCH], found.present, broker, now)
    except FailedQueueBusy:
        done.busy = True
    if done.rows or done.parked or done.removed:
        text = "Failed queue and inbox agree again: %s rows made, %s messages parked, %s taken out"
        log.info(text, done.rows, done.parked, done.removed)
    return done


def _counted(broker: Broker) -> int:
    count = broker.counts().failed
    if count is None:
        raise QueueUnavailable("The failed queue cannot be used now.")
    return count


def _park_missing(
    rows: Iterable[SchedulerExecution], present: set[tuple[int | None, int]], broker: Broker, now: datetime
) -> int:
    """Park the message of each row, unless the queue already holds the message. Returns how many were parked.

    Args:
        present: the execution id and the attempt of each message in the queue.
    """
    count = 0
    for row in rows:
        if (row.pk, row.attempt) in present:  # the message was stored, but its confirm did not arrive in time
            mark_parked(row.pk, row.attempt, now)
        else:
            count += park(row, broker, now, f"{row.error_class}: {row.error_message}", row.retry_count)
    return count


def remove_messages(broker: Broker, attempts: dict[int, int], keys: Iterable[str] = ()) -> None:
    """Remove the messages of executions from the failed queue. An operator has republished or discarded the executions.

    If the broker cannot be reached or another process holds the queue, a later sync pass removes the messages.

    Args:
        attempts: maps each execution's id to an attempt. The messages of this attempt and of earlier attempts are
            removed.
        keys: the execution keys of executions that were made for foreign messages.
    """
    if not broker.has_failed_queue or not attempts or guard.must_wait(broker, LEFT):
        return
    foreign = set(keys)
    for _ in range(BUSY_TRIES):
        try:
            with broker.failed_queue() as session:
                session.remove([message for message in session.messages if _is_of(message, attempts, foreign)])
            return
        except FailedQueueBusy:
            time.sleep(BUSY_SECONDS)
        except BrokerError as error:
            log.warning("The failed queue cannot be reached; its messages are taken out later: %s", error)
            return


def _sort(messages: Sequence[Parked]) -> _Sorted:
    found = _Sorted()
    tasks = [_task(message) for message in messages]
    rows = _rows({task.execution_id for task in tasks if task is not None and task.execution_id is not None})
    keyed = _keyed({message_key(message.message_id) for message in messages if message.message_id})
    found.present = {
        (task.execution_id, task.attempt) for task in tasks if task is not None and _identity(task) in rows
    }
    for message, task in zip(messages, tasks, strict=True):
        # The id alone is not enough: after the database was set up anew, an old message may contain a new row's id. So
        # the execution key and the target must match, too. A consumer compares the same columns before it starts a run.
        if task is not None and _identity(task) in rows:
            _sort_known(found, message, task, *rows[_identity(task)])
        elif message.message_id and (known := keyed.get(message_key(message.message_id))) is not None:
            if known != State.FAILED.value:
                found.remove.append(message)
        else:
            found.strange.append(message)
    return found


def _sort_known(found: _Sorted, message: Parked, task: TaskMessage, state: str, attempt: int) -> None:
    """Add the message to a list of `found`, depending on the state and the attempt of the message's row."""
    limit = limit_reached(message)
    if state == State.FAILED.value:
        if task.attempt < attempt and not limit:
            found.remove.append(message)  # the message of an earlier failure; the last failure has its own message
    elif limit and state in WAITING:
        found.gave_up.append((task, message.deaths))
    elif not (limit and state == State.RUNNING.value):
        found.remove.append(message)


def _task(parked: Parked) -> TaskMessage | None:
    with suppress(DecodeError):
        return decode(parked.body)
    return None


Identity = tuple[int | None, str, str, int]
"""The id and the key of an execution, and the type and the id of its target."""

_COMPARED = ("execution_key", "type", "target_id", "state", "attempt")


def _identity(task: TaskMessage) -> Identity:
    return task.execution_id, task.execution_key, task.type, task.id


def _rows(ids: set[int]) -> dict[Identity, tuple[str, int]]:
    """Map executions to their state and their attempt."""
    found: dict[Identity, tuple[str, int]] = {}
    for chunk in in_chunks(sorted(ids)):
        rows = SchedulerExecution.objects.filter(pk__in=chunk).only(*_COMPARED)
        for row in rows:
            found[row.pk, row.execution_key, row.type, row.target_id or 0] = row.state, row.attempt
    return found


def _keyed(keys: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for chunk in in_chunks(sorted(keys)):
        rows = SchedulerExecution.objects.filter(execution_key__in=chunk, trigger=Trigger.MESSAGE.value)
        found.update(rows.values_list("execution_key", "state"))
    return found


def _is_of(parked: Parked, attempts: dict[int, int], keys: set[str]) -> bool:
    task = _task(parked)
    if task is not None and task.execution_id is not None and task.execution_id in attempts:
        return task.attempt <= attempts[task.execution_id] or limit_reached(parked)
    return bool(parked.message_id) and message_key(parked.message_id) in keys
