"""Inserts the executions of occurrences. The unique key (scheduler, execution key) refuses a second row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from scheduling.core.lifecycle import State
from scheduling.execution.publish import context_of
from scheduling.execution.row_values import insert_instances
from scheduling.handlers.queues import work_queue_of
from scheduling.handlers.targets import target_names
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution, UncountedSkip
from scheduling.processes.database import locking
from scheduling.processes.execution_signals import send_skipped
from scheduling.processes.identity import container_id

log = get_logger(__name__)

Names = Mapping[tuple[str, int | None], str]
"""The names of targets, by type and id."""


def execution_of(row: Any, now: datetime, names: Names | None = None, **columns: Any) -> SchedulerExecution:
    """A new execution of a schedule, not saved yet.

    Args:
        row: a Scheduler, or an object that has `id`, `target_type`, `target_id`, `stay_alive`, `queue`, `priority`,
            `params` and `group_id`; and `revision`, if it is a schedule.
        names: the names of the targets, if the caller has already read them.
        columns: values of further columns. A value for `params`, `executed_at`, `container_id`, `queue` or `group_id`
            replaces the value that the function would set.

    Raises:
        QueueInvalid: plain SQL has written a queue or a priority that does not exist.
    """
    target = (row.target_type, row.target_id)
    name = (target_names([target]) if names is None else names).get(target, "")
    queue = work_queue_of(row.target_type, name, row.queue, row.priority, service=row.stay_alive)
    own = {"params": row.params, "executed_at": now, "container_id": container_id(), "queue": queue}
    own["group_id"] = row.group_id
    own["revision"] = getattr(row, "revision", None)  # a run without a schedule has none
    return SchedulerExecution(
        **{**own, **columns}, scheduler_id=row.id, type=row.target_type, target_id=row.target_id, target_name=name
    )


def skipped(now: datetime, reason: str, missed: int = 0) -> dict[str, Any]:
    """The columns of a skipped execution. `missed` is the number of missed occurrences that the row counts."""
    return {"state": State.SKIPPED.value, "finished_at": now, "reason": reason, "missed": missed}


def insert(made: Sequence[SchedulerExecution]) -> Sequence[SchedulerExecution]:
    """Insert executions of one claim. Returns the executions that were inserted.

    All of them have the `executed_at` and the `container_id` that `execution_of` has set with the same `now`.
    If a row with the same key exists, the occurrence is already recorded. Its execution is not inserted. Receivers of
    `execution_skipped` are told of the skipped ones.
    """
    inserted = _insert_all(made)
    note_skipped(inserted)
    return inserted


def note_skipped(inserted: Sequence[SchedulerExecution]) -> None:
    """Note those of the new executions that are skipped for the tallies, and tell the receivers of the signal.

    The caller is in the transaction that has inserted them.
    """
    skips = [execution for execution in inserted if execution.state == State.SKIPPED.value]
    if skips:
        UncountedSkip.objects.note(skips)
        send_skipped(skips)


def _insert_all(made: Sequence[SchedulerExecution]) -> Sequence[SchedulerExecution]:
    try:
        with transaction.atomic():
            insert_instances(made)
    except IntegrityError:
        # This error is rare: a backup was restored, or an occurrence was planned twice. Each row is now inserted in its
        # own savepoint, so that one refused row does not affect the other rows.
        return [execution for execution in made if _inserted(execution)]
    if made and made[-1].pk is None:
        # MySQL does not return the ids after a bulk insert, so a query reads them.
        ids = {
            (scheduler, key): pk
            for pk, scheduler, key in SchedulerExecution.objects.filter(
                container_id=container_id(), executed_at=made[0].executed_at,
                scheduler_id__in={execution.scheduler_id for execution in made},
            ).values_list("pk", "scheduler_id", "execution_key")
        }  # fmt: skip
        for execution in made:
            execution.pk = ids[execution.scheduler_id, execution.execution_key]
    return made


def _inserted(execution: SchedulerExecution) -> bool:
    try:
        with transaction.atomic():
            execution.pk = None
            execution.save(force_insert=True)
    except IntegrityError:
        key = {"scheduler": execution.scheduler_id, "execution_key": execution.execution_key}
        # On MySQL, a lock sees the row also if it was committed after this transaction's first look (REPEATABLE READ).
        with transaction.atomic():
            known = locking(SchedulerExecution.objects.filter(**key)).values_list("pk").first()
        if known is None:
            raise
        log.info("Already on record, not inserted again", extra=context_of(execution))
        return False
    return True
