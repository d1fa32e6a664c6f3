"""Parked: the broker's failed queue and the inbox's rows, kept in step. The queue keeps, the inbox finds.

The sync pass looks at the whole queue without acknowledging: messages without a row (a stranger's, one
that nobody can read, one that the broker gave up bringing) get one; failed rows whose message was never
confirmed are parked; and messages whose row an operator has dealt with are taken out. Holding the queue
exclusively is the lock: one process at a time.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduling.adopt import columns_of, message_key
from scheduling.broker import Broker, BrokerError, Parked, ParkedBusy
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.messages import DecodeError, FailedMessage, TaskMessage, check_storable, decode, decode_failed
from scheduling.core.text import clean
from scheduling.dispatch import mark_parked, park
from scheduling.identity import container_id
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution

log = get_logger(__name__)

CHUNK = 500
PARK_BATCH = 500
PARK_GRACE = timedelta(seconds=30)
"""How long the consumer that recorded a failure may take to have its message confirmed."""

WAITING = (State.CLAIMED.value, State.QUEUED.value, State.RETRYING.value)
GAVE_UP = "RabbitMQ gave up bringing its message: the delivery limit of its queue was reached."
UNREADABLE = "UnreadableMessage"
BUSY_TRIES, BUSY_SECONDS = 5, 0.3


Standing = tuple[int, int]
"""Messages in the failed queue, and rows that say they have one there. Somebody may have taken messages away by hand:
then the two differ for good, and only a change of either is worth a look."""


@dataclass
class Synced:
    """What a pass did; `busy`: another process was at it."""

    rows: int = 0
    parked: int = 0
    removed: int = 0
    busy: bool = False
    standing: Standing | None = None
    """As it was found, if that was asked for."""


@dataclass
class _Sorted:
    """A look at the queue, sorted by what is to be done."""

    strange: list[Parked] = field(default_factory=list)
    gave_up: list[TaskMessage] = field(default_factory=list)
    remove: list[Parked] = field(default_factory=list)
    present: set[tuple[int | None, int]] = field(default_factory=set)
    """Execution and attempt of each message."""


def sync(broker: Broker, now: datetime, *, only_if_changed: bool = False, seen: Standing | None = None) -> Synced:
    """One pass; also called when the inbox is opened.

    Args:
        only_if_changed: do not read a queue that holds as many messages as the inbox has parked rows.
        seen: nor one that stands beside its rows as an earlier pass has left them.

    Raises:
        BrokerError: the broker is away; rows are shown all the same.
    """
    done = Synced()
    if not broker.parks:
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
        with broker.parked() as session:
            found = _sort(session.messages)
            session.remove(found.remove)
            nameless = [each for each in found.strange if not each.message_id]
            named = [each for each in found.strange if each.message_id] + session.identify(nameless)
            done.removed = len(found.remove)
            done.rows = _give_up(found.gave_up, now) + _make_rows(named, now)
            for row in unparked.order_by("pk")[:PARK_BATCH]:
                if (row.pk, row.attempt) in found.present:  # its confirm came when nobody waited for it any more
                    mark_parked(row.pk, row.attempt, now)
                else:
                    error = f"{row.error_class}: {row.error_message}"
                    done.parked += park(row, broker, now, error, row.retry_count)
    except ParkedBusy:
        done.busy = True
    if done.rows or done.parked or done.removed:
        log.info(
            "Failed queue and inbox agree again: %s rows made, %s messages parked, %s taken out",
            done.rows,
            done.parked,
            done.removed,
        )
    return done


def take_out(broker: Broker, attempts: dict[int, int], keys: Iterable[str] = ()) -> None:
    """Take the messages of executions out of the failed queue, after an operator dealt with their rows.

    What cannot be done now (the broker is away, somebody else holds the queue) the sync pass does later.

    Args:
        attempts: by execution id, the attempt up to which its messages are dealt with.
        keys: execution keys of rows that stand for foreign messages.
    """
    if not broker.parks or not attempts:
        return
    foreign = set(keys)
    for _ in range(BUSY_TRIES):
        try:
            with broker.parked() as session:
                session.remove([each for each in session.messages if _is_of(each, attempts, foreign)])
            return
        except ParkedBusy:
            time.sleep(BUSY_SECONDS)
        except BrokerError as error:
            log.warning("The failed queue cannot be reached; its messages are taken out later: %s", error)
            return


def read_again(row: SchedulerExecution) -> bool:
    """Fill a row whose message could not be read, if this version reads it; whether it does."""
    body = _body_of(row.params)
    try:
        task = decode(body)
        check_storable(task, body)
        columns = columns_of(task)
    except DecodeError as error:
        log.warning("Not republished, it still cannot be read: %s", error, extra={"execution": row.pk})
        return False
    return bool(SchedulerExecution.objects.filter(pk=row.pk, state=State.FAILED.value).update(**columns))


def _sort(messages: Sequence[Parked]) -> _Sorted:
    found = _Sorted()
    tasks = [_task(each) for each in messages]
    rows = _rows({task.execution_id for task in tasks if task is not None and task.execution_id is not None})
    keyed = _keyed({message_key(each.message_id) for each in messages if each.message_id})
    found.present = {(task.execution_id, task.attempt) for task in tasks if task is not None}
    for each, task in zip(messages, tasks, strict=True):
        limit = _limit_reached(each)
        # The key too: after a database was set up anew, old messages meet new rows of the same numbers.
        if task is not None and (task.execution_id, task.execution_key) in rows:
            state, attempt = rows[task.execution_id, task.execution_key]
            if state == State.FAILED.value:
                if task.attempt < attempt and not limit:
                    found.remove.append(each)  # an earlier failure; the later one has its own message
            elif limit and state in WAITING:
                found.gave_up.append(task)
            elif not (limit and state == State.RUNNING.value):
                found.remove.append(each)
        elif each.message_id and (known := keyed.get(message_key(each.message_id))) is not None:
            if known != State.FAILED.value:
                found.remove.append(each)
        else:
            found.strange.append(each)
    return found


def _limit_reached(parked: Parked) -> bool:
    return any(reason == "delivery_limit" for _, reason in parked.deaths)


def _task(parked: Parked) -> TaskMessage | None:
    with suppress(DecodeError):
        return decode(parked.body)
    return None


def _rows(ids: set[int]) -> dict[tuple[int | None, str], tuple[str, int]]:
    found: dict[tuple[int | None, str], tuple[str, int]] = {}
    for chunk in _chunks(sorted(ids)):
        rows = SchedulerExecution.objects.filter(pk__in=chunk).values_list("pk", "execution_key", "state", "attempt")
        found.update({(pk, key): (state, attempt) for pk, key, state, attempt in rows})
    return found


def _keyed(keys: set[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for chunk in _chunks(sorted(keys)):
        rows = SchedulerExecution.objects.filter(execution_key__in=chunk, trigger=Trigger.MESSAGE.value)
        found.update(rows.values_list("execution_key", "state"))
    return found


def _chunks(values: list[Any]) -> Iterable[list[Any]]:
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def _is_of(parked: Parked, attempts: dict[int, int], keys: set[str]) -> bool:
    task = _task(parked)
    if task is not None and task.execution_id is not None and task.execution_id in attempts:
        return task.attempt <= attempts[task.execution_id] or _limit_reached(parked)
    return bool(parked.message_id) and message_key(parked.message_id) in keys


def _give_up(tasks: Sequence[TaskMessage], now: datetime) -> int:
    """Executions whose message the broker no longer brings fail visibly; a compare-and-set each."""
    count = 0
    for task in tasks:
        assert task.execution_id is not None  # noqa: S101 - found by it
        count += SchedulerExecution.objects.filter(
            pk=task.execution_id, state__in=WAITING, attempt__gte=task.attempt - 1
        ).update(
            state=State.FAILED.value, wake_at=None, finished_at=now, published_at=now, reason=GAVE_UP,
            error_class="DeliveryLimit", error_message=GAVE_UP, fingerprint=fingerprint("DeliveryLimit", GAVE_UP),
        )  # fmt: skip
        log.error("PERMANENTLY FAILED TASK: %s", GAVE_UP, extra={"execution": task.execution_id})
    return count


def _make_rows(messages: Sequence[Parked], now: datetime) -> int:
    rows = [_row(each, now) for each in messages]
    # Held exclusively, so nobody makes the same rows; a key that is taken nevertheless has its row.
    for chunk in _chunks(rows):
        SchedulerExecution.objects.bulk_create(chunk, ignore_conflicts=True)
    return len(rows)


def _row(parked: Parked, now: datetime) -> SchedulerExecution:
    failed: FailedMessage | None = None
    columns: dict[str, Any]
    try:
        task = decode(parked.body)
        check_storable(task, parked.body)
        columns = columns_of(task)
        with suppress(DecodeError):
            failed = decode_failed(parked.body)
        error_class, error = "Failed", (failed.failed_reason if failed else "") or parked.reason
    except DecodeError as problem:
        columns = {"type": "", "target_id": None, "target_name": "", "params": _params_of(parked.body)}
        error_class, error = UNREADABLE, str(problem)
    if _limit_reached(parked):
        error_class, error = "DeliveryLimit", GAVE_UP
    error = clean(error or "It lies in the failed queue, and nothing says why.", 4_000)
    failed_at = failed.failed_at if failed is not None else now
    return SchedulerExecution(
        **columns, execution_key=message_key(parked.message_id), trigger=Trigger.MESSAGE.value,
        scheduled_at=failed_at, executed_at=now, container_id=container_id(), state=State.FAILED.value,
        finished_at=failed_at, published_at=now, error_class=error_class, error_message=error,
        fingerprint=fingerprint(error_class, error), reason="It was found in the failed queue.",
    )  # fmt: skip


def _params_of(body: bytes) -> dict[str, Any]:
    """An unreadable body for people and, where text cannot hold it, also for `read_again`."""
    params = {"body": clean(body.decode("utf-8", "backslashreplace"), 64_000)}
    if params["body"].encode() != body:
        params["body_base64"] = base64.b64encode(body[:1_000_000]).decode()
    return params


def _body_of(params: dict[str, Any]) -> bytes:
    if isinstance(encoded := params.get("body_base64"), str):
        return base64.b64decode(encoded)
    return str(params.get("body", "")).encode()
