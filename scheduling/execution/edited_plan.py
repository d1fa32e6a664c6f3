"""Tells the plan that an edit of a schedule would have if it were saved now. Nothing is written."""

from __future__ import annotations

from copy import copy
from datetime import datetime

from scheduling.execution.former_timing import first_of, settled_of
from scheduling.execution.pauses import drops_due
from scheduling.models import Scheduler
from scheduling.models.decided import not_before
from scheduling.models.plan import PLANNED


def as_saved(stored: Scheduler, edited: Scheduler, now: datetime) -> Scheduler:
    """The edited schedule with the next run that a save now would give it.

    It decides as `Scheduler.save` and `planning.record_former` do: what is due, held or spread by the former times may
    stay, or is dropped.

    Raises:
        CronError, ZoneError: the edited times are invalid.
    """
    row, now = copy(edited), not_before(stored, now)
    for name in PLANNED:
        setattr(row, name, getattr(stored, name))
    if not row.plan_changed():
        return row
    row.plan(now)
    if drops_due(stored, row, now):
        _plan_anew(row, now)
    first = first_of(row)
    if first is None or first > now or not stored.planned_status:
        return row
    settled = settled_of(stored, now, times_change=row.times_changed(stored), edited=row)
    if settled is not None:
        row.next_run_at, row.next_nominal_at = settled.kept, None
    if row.next_run_at is None:
        _plan_anew(row, now)
    return row


def _plan_anew(row: Scheduler, now: datetime) -> None:
    row.next_run_at = row.next_nominal_at = None
    row.plan(now)
