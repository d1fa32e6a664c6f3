"""The actions of operators on the failed inbox. Besides them, only the age of failures takes a row out of the inbox.

Republish and discard first change the row by a compare-and-set, so that a second click does nothing. Then they change
the broker's queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.core import inbox_sentences as say
from scheduling.core.lifecycle import State, Trigger
from scheduling.execution.publish import publish
from scheduling.execution.run_now import requeue_failed
from scheduling.inbox.parked_rows import decode_again
from scheduling.inbox.sync import remove_messages
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.policies import overlap
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.guard import guard

log = get_logger(__name__)


def republish(
    ids: Iterable[int],
    broker: Broker,
    by: str,
    now: datetime | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    attempt: int | None = None,
    first: datetime | None = None,
    step: timedelta = timedelta(0),
) -> list[int]:
    """Run failed executions again. The retry count starts again at zero, but the attempt number continues.

    Args:
        by: the name of the user who republishes. The row records this name.
        params: new params of the execution; allowed only with a single id.
        attempt: the expected number of the execution's last attempt. An execution with a later attempt is left out.
            Allowed only with a single id.
        first: when the first execution may start; None means now.
        step: the time between the starts of two executions, if `first` is given.

    Returns:
        The ids that were republished. An id is missing if its execution has left the inbox or has failed again, if its
        message cannot be read, or if its schedule runs alone and another execution of it is open.

    Raises:
        ValueError: `params` or `attempt` is given, and the number of ids is not one.
        Held: nothing may be started now (`processes.guard`).
    """
    guard.check(broker, may_claim=True)
    ids = list(ids)
    if len(ids) != 1 and not (params is None and attempt is None):
        raise ValueError("Parameters and an attempt are those of one execution: give one id.")
    now = now or clock.now()
    done: list[SchedulerExecution] = []
    at = first
    rows = _rows(ids)
    concerned = overlap.concerned(row.scheduler_id for row in rows)
    for row in rows:
        if attempt is not None and row.attempt != attempt:
            continue  # the execution has failed again since the operator opened its page
        if not row.type and (params is not None or not decode_again(row)):
            continue  # the execution comes from a message that cannot be read, so it cannot run
        said = _republished(by, at, edited=params is not None)
        schedule = row.scheduler_id if row.scheduler_id in concerned else None
        requeue = partial(requeue_failed, row.pk, broker, said, now, schedule, params, at, attempt=row.attempt)
        if again_after_conflicts(requeue):
            done.append(row)
            at = at + step if at is not None else None
    if done:
        if first is None:  # with `first`, a sweep publishes each execution when it may start
            publish_requeued(done, broker)
        log.info("Republished failed executions: %s", len(done), extra={"by": by})
        # The parked message is removed last. Until the broker confirms the new message, the parked message is the
        # broker's only message for the execution.
        take_out_parked(broker, done)
    return [row.pk for row in done]


def requeue_in_transaction(
    attempts: Mapping[int, int], broker: Broker, reason: str, now: datetime
) -> list[SchedulerExecution]:
    """Requeue executions in the caller's transaction. Returns the executions that were requeued.

    After the commit, the caller passes these executions to `publish_requeued`. If the caller crashes before this call,
    a sweep publishes the executions.

    Args:
        attempts: maps the id of each execution to its expected last attempt. An execution with a later attempt is left
            out.

    Raises:
        Held: nothing may be started now (`processes.guard`).
    """
    guard.check(broker, may_claim=True)
    rows = _rows(attempts)
    concerned = overlap.concerned(row.scheduler_id for row in rows)
    return [
        row
        for row in rows
        if row.attempt == attempts[row.pk]
        and (row.type or decode_again(row))
        and requeue_failed(
            row.pk,
            broker,
            reason,
            now,
            row.scheduler_id if row.scheduler_id in concerned else None,
            attempt=row.attempt,
        )
    ]


def publish_requeued(rows: Iterable[SchedulerExecution], broker: Broker) -> None:
    """Publish requeued rows that are still claimed.

    The parked messages of these rows stay in the failed queue until the caller or a sync pass removes them.
    """
    pks = [row.pk for row in rows]
    publish(list(SchedulerExecution.objects.filter(pk__in=pks, state=State.CLAIMED.value)), broker)


def discard(
    ids: Iterable[int], by: str, reason: str, now: datetime | None = None, broker: Broker | None = None
) -> list[int]:
    """Drop failed executions from the inbox. Returns the ids of the executions that were discarded.

    The rows stay, with the reason, until retention removes them.

    Args:
        broker: the broker that holds the parked messages; if None, the next sync pass removes the messages.

    Raises:
        ValueError: no reason is given.
    """
    if not reason.strip():
        raise ValueError("Enter a reason. It is saved with each run.")
    now = now or clock.now()
    text = say.DISCARDED.format(by=by, reason=reason.strip())[:2000]
    stored, columns = SchedulerExecution.objects, {"reason": text, "finished_at": now}
    done = [row for row in _rows(ids) if stored.filter(pk=row.pk).move([State.FAILED], State.DISCARDED, **columns)]
    if done:
        log.info("Discarded %s failed executions", len(done), extra={"by": by})
        if broker is not None:
            take_out_parked(broker, done)
    return [row.pk for row in done]


def _republished(by: str, at: datetime | None, *, edited: bool) -> str:
    if at is None:
        return (say.REPUBLISHED_EDITED if edited else say.REPUBLISHED).format(by=by)
    template = say.REPUBLISHED_EDITED_AT if edited else say.REPUBLISHED_AT
    return template.format(by=by, at=f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")


def _rows(ids: Iterable[int]) -> list[SchedulerExecution]:
    return list(SchedulerExecution.objects.filter(pk__in=list(ids), state=State.FAILED.value).order_by("pk"))


def take_out_parked(broker: Broker, rows: list[SchedulerExecution]) -> None:
    """Remove the parked messages of these rows, because an operator has republished or discarded the executions."""
    foreign = [row.execution_key for row in rows if row.trigger == Trigger.MESSAGE.value]
    remove_messages(broker, {row.pk: row.attempt for row in rows}, foreign)
