"""Ends executions that have not started by their start deadline: they are skipped, with the reason.

The start itself compares the deadline (`execution.transitions`), so no run starts after it. A consumer ends what it may
not start any more. A sweep ends what no consumer takes.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduling.core.lifecycle import CANCELLED_AT_ONCE, State
from scheduling.core.skip_reasons import expired
from scheduling.core.start_deadline import FOR_A_PRODUCER, start_by, where_it_waits
from scheduling.execution.insert import note_skipped, skipped
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution, StartDeadline
from scheduling.models.prepared import any_of
from scheduling.policies import overlap
from scheduling.processes.database import is_away
from scheduling.processes.set_aside import handle_each

log = get_logger(__name__)

ROWS_PER_SWEEP = 500

NOT_STARTED = CANCELLED_AT_ONCE - {State.RETRYING}
"""The states of an execution that has not started. A retry has no deadline."""


def due_at(row: SchedulerExecution) -> datetime:
    """The instant from which the deadline of an execution counts."""
    return row.assigned_at or row.scheduled_at


def deadline_of(row: Any, due: datetime) -> datetime | None:
    """By when an occurrence of a schedule must have started; None if it may start at any time.

    Args:
        row: a schedule, or an object that has `start_within_seconds` and `stay_alive`.
        due: the instant of the occurrence.
    """
    return None if row.stay_alive else start_by(due, row.start_within_seconds)


def expired_columns(row: Any, due: datetime, now: datetime) -> dict[str, Any] | None:
    """The columns of an occurrence that is claimed after its deadline; None if it may still start."""
    by = deadline_of(row, due)
    if by is None or now < by:
        return None
    return skipped(now, expired(by - due, now - due, FOR_A_PRODUCER), missed=1)


def expire(keys: Collection[int], now: datetime, *, wait: bool = True) -> list[int]:
    """End those of the executions that wait and whose deadline has passed. Returns their ids.

    Args:
        wait: whether to wait for rows that another process has locked. Otherwise they are left out.
    """
    rows = SchedulerExecution.objects.in_state(*NOT_STARTED).filter(pk__in=list(keys), attempt=0, start_by__lte=now)
    if not rows.exists():  # mostly: a consumer asks about copies
        return []
    with transaction.atomic():
        found = list(rows.select_for_update(skip_locked=not wait).order_by("pk"))
        for row in found:
            assert row.start_by is not None  # noqa: S101 - the query asks for it
            where = where_it_waits(row.state, row.queue_label, row.reason)
            row.state, row.missed = State.SKIPPED.value, 1
            row.reason = expired(row.start_by - due_at(row), now - due_at(row), where)
            SchedulerExecution.objects.filter(pk=row.pk).move(
                NOT_STARTED, State.SKIPPED, wake_at=None, start_by=None, finished_at=now, reason=row.reason,
                missed=row.missed, deferred_at=None,
            )  # fmt: skip
        note_skipped(found)
    for row in found:
        log.info("A run has expired: %s", row.reason, extra={"execution": row.pk})
    ended = [row.pk for row in found]
    if ended:
        overlap.look_soon(ended, now)
    return ended


ANY_DUE = any_of(lambda now: StartDeadline.objects.filter(start_by__lte=now).order_by("start_by"))


def sweep_deadlines(now: datetime, limit: int = ROWS_PER_SWEEP) -> int:
    """End the executions that nothing has started by their deadline. Returns how many were ended."""
    if not ANY_DUE.rows(now):
        return 0
    due = StartDeadline.objects.filter(start_by__lte=now).order_by("start_by")
    keys = list(due.values_list("pk", flat=True)[:limit])
    ended: list[int] = []
    try:
        ended += expire(keys, now, wait=False)
    except Exception as error:
        if is_away(error):
            raise
        # A row cannot be read or changed. It is set aside, and the others are ended.
        handle_each(keys, lambda pk: ended.extend(expire([pk], now, wait=False)), now)
    # A row that was locked is looked at again.
    rows = SchedulerExecution.objects.in_state(*NOT_STARTED).filter(pk__in=keys, attempt=0, start_by__lte=now)
    left = set(rows.values_list("pk", flat=True))
    done = StartDeadline.objects.filter(pk__in=[pk for pk in keys if pk not in left])
    done._raw_delete(done.db)
    return len(ended)
