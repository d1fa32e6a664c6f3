"""Makes the broker's failed queue and the rows of the failed inbox agree.

The sync pass reads the whole queue without acknowledging the messages. A foreign or unreadable message may have no row;
the pass creates one. If the broker gave up delivering a message, the pass marks the execution as failed. If the broker
never confirmed the parked message of a failed row, the pass parks the message again. If an operator has republished or
discarded a row, the pass removes the row's message. Only one process at a time can hold the queue.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduling.broker import Broker, BrokerError, FailedQueueBusy, Parked
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import WAITING, State, Trigger
from scheduling.core.messages import DecodeError, TaskMessage, decode
from scheduling.execution.foreign import message_key
from scheduling.execution.publish import mark_parked, park
from scheduling.inbox.parked_rows import GAVE_UP, in_chunks, limit_reached, make_rows
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution

log = get_logger(__name__)

PARK_BATCH = 500
PARK_GRACE = timedelta(seconds=30)
"""How long after a failure was recorded a consumer may wait until the broker confirms the parked message."""

BUSY_TRIES, BUSY_SECONDS = 5, 0.3


QueueAndRows = tuple[int, int]
"""How many messages are in the failed queue, and how many rows record a parked message. If messages were removed by
hand, the two numbers never agree again. Another sync pass is then useful only after one of the numbers has changed."""


@dataclass
class Synced:
    """The result of a sync pass. `busy` means that another process held the queue."""

    rows: int = 0
    parked: int = 0
    removed: int = 0
    busy: bool = False
    standing: QueueAndRows | None = None
    """The counts that the pass found, if it was called with `only_if_changed`."""


@dataclass
class _Sorted:
    """The messages of the queue, sorted by what the pass must do with them."""

    strange: list[Parked] = field(default_factory=list)
    gave_up: list[TaskMessage] = field(default_factory=list)
    remove: list[Parked] = field(default_factory=list)
    present: set[tuple[int | None, int]] = field(default_factory=set)
    """The execution id and the attempt of each message."""


def sync(broker: Broker, now: datetime, *, only_if_changed: bool = False, seen: QueueAndRows | None = None) -> Synced:
    """Make one sync pass. The page of the failed inbox also calls it.

    Args:
        only_if_changed: skip the pass if the queue holds as many messages as the inbox has parked rows.
        seen: the two counts that an earlier pass returned as `standing`. With `only_if_changed`, the pass is also
            skipped if both counts are still the same.

    Raises:
        BrokerError: the broker cannot be reached.
    """
    done = Synced()
    if not broker.has_failed_queue:
        return done
    failed = SchedulerExecution.objects.filter(state=State.FAILED.value)
    unparked = failed.filter(published_at=None, finished_at__lt=now - PARK_GRACE).exclude(type="")
    count = broker.counts().failed
    if not unparked.exists():
        if count == 0:
            return done
        if only_if_changed:
            rows = failed.filter(published_at__isnull=False).count()
            done.standing = (count or 0, rows)
            if count == rows or done.standing == seen:
                return done
    try:
        with broker.failed_queue() as session:
            found = _sort(session.messages)
            session.remove(found.remove)
            nameless = [message for message in found.strange if not message.message_id]
            named = [message for message in found.strange if message.message_id] + session.identify(nameless)
            done.removed = len(found.remove)
            done.rows = _give_up(found.gave_up, now) + make_rows(named, now)
            done.parked = _park_missing(unparked.order_by("pk")[:PARK_BATCH], found.present, broker, now)
    except FailedQueueBusy:
        done.busy = True
    if done.rows or done.parked or done.removed:
        text = "Failed queue and inbox agree again: %s rows made, %s messages parked, %s taken out"
        log.info(text, done.rows, done.parked, done.removed)
    return done


def _park_missing(
    rows: Iterable[SchedulerExecution], present: set[tuple[int | None, int]], broker: Broker, now: datetime
) -> int:
    """Park the messages of rows unless the message is in the queue (`present`). Returns how many were parked."""
    count = 0
    for row in rows:
        if (row.pk, row.attempt) in present:  # the broker's confirm came too late
            mark_parked(row.pk, row.attempt, now)
        else:
            count += park(row, broker, now, f"{row.error_class}: {row.error_message}", row.retry_count)
    return count


def remove_messages(broker: Broker, attempts: dict[int, int], keys: Iterable[str] = ()) -> None:
    """Take the messages of executions out of the failed queue, after an operator republished or discarded them.

    If the broker cannot be reached or another process holds the queue, a later sync pass removes the messages.

    Args:
        attempts: maps an execution id to the last attempt whose message is removed.
        keys: the execution keys of executions that were made for foreign messages.
    """
    if not broker.has_failed_queue or not attempts:
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
    found.present = {(task.execution_id, task.attempt) for task in tasks if task is not None}
    for message, task in zip(messages, tasks, strict=True):
        # The execution key is compared too: if the database was set up anew, an old message may name a new row's id.
        if task is not None and (task.execution_id, task.execution_key) in rows:
            _sort_known(found, message, task, *rows[task.execution_id, task.execution_key])
        elif message.message_id and (known := keyed.get(message_key(message.message_id))) is not None:
            if known != State.FAILED.value:
                found.remove.append(message)
        else:
            found.strange.append(message)
    return found


def _sort_known(found: _Sorted, message: Parked, task: TaskMessage, state: str, attempt: int) -> None:
    """Sort a message by the state and the attempt of its row."""
    limit = limit_reached(message)
    if state == State.FAILED.value:
        if task.attempt < attempt and not limit:
            found.remove.append(message)  # this message is of an earlier failure; the later failure has its own message
    elif limit and state in WAITING:
        found.gave_up.append(task)
    elif not (limit and state == State.RUNNING.value):
        found.remove.append(message)


def _task(parked: Parked) -> TaskMessage | None:
    with suppress(DecodeError):
        return decode(parked.body)
    return None


def _rows(ids: set[int]) -> dict[tuple[int | None, str], tuple[str, int]]:
    found: dict[tuple[int | None, str], tuple[str, int]] = {}
    for chunk in in_chunks(sorted(ids)):
        rows = SchedulerExecution.objects.filter(pk__in=chunk).values_list("pk", "execution_key", "state", "attempt")
        found.update({(pk, key): (state, attempt) for pk, key, state, attempt in rows})
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


def _give_up(tasks: Sequence[TaskMessage], now: datetime) -> int:
    """Move executions to failed, because the broker gave up delivering their messages. Returns how many moved."""
    count = 0
    for task in tasks:
        assert task.execution_id is not None  # noqa: S101 - `_rows` found it by its id
        count += SchedulerExecution.objects.filter(pk=task.execution_id, attempt__gte=task.attempt - 1).move(
            WAITING, State.FAILED, wake_at=None, finished_at=now, published_at=now, reason=GAVE_UP,
            error_class="DeliveryLimit", error_message=GAVE_UP, fingerprint=fingerprint("DeliveryLimit", GAVE_UP),
        )  # fmt: skip
        log.error("PERMANENTLY FAILED TASK: %s", GAVE_UP, extra={"execution": task.execution_id})
    return count
