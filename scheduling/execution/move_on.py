"""Sets when schedules are due next, after their due occurrences have been inserted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db.models import F
from django.db.models.functions import Coalesce

from scheduling.core.occurrences import Plan
from scheduling.execution.due_row import DueRow
from scheduling.models import Scheduler
from scheduling.models.set_each import set_each


def move_on(planned: Sequence[tuple[DueRow, Plan]]) -> None:
    """Set `next_run_at` of schedules whose due occurrences have been inserted."""
    moved: dict[int, tuple[datetime | None, datetime | None]] = {}
    plain: dict[datetime | None, list[int]] = defaultdict(list)
    finished: list[int] = []
    if off := [row.id for row, _plan in planned if not row.status]:
        # If plain SQL has paused the schedule, its pause begins with this occurrence. No sweep has seen the pause yet.
        first = Coalesce("paused_at", "next_nominal_at", F("next_run_at"))
        since = {"paused_at": first, "planned_status": False}
        Scheduler.objects.filter(pk__in=off).update(**since)
        # Later occurrences are not on record, although they may have been due before the pause.
        recorded = Scheduler.objects.filter(pk__in=off, pause_recorded_to__isnull=True)
        recorded.update(pause_recorded_to=Coalesce("next_nominal_at", F("next_run_at")))
    for row, plan in planned:
        if row.date_time is not None and row.status and plan.next_run_at is None:
            finished.append(row.id)
        elif row.next_nominal_at is None and plan.next_nominal_at is None:
            plain[plan.next_run_at].append(row.id)
        else:
            moved[row.id] = (plan.next_run_at, plan.next_nominal_at)
    for instant, ids in plain.items():
        Scheduler.objects.filter(pk__in=ids).update(next_run_at=instant)
    # Few schedules with rules of their own have the same instants.
    set_each(Scheduler, ("next_run_at", "next_nominal_at"), moved)
    if finished:
        # A one-time schedule is paused after its occurrence.
        none = {"next_run_at": None, "next_nominal_at": None}
        Scheduler.objects.filter(pk__in=finished).update(**none, status=False, planned_status=False)
