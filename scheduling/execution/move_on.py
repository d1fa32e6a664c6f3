"""Sets when schedules are due next, after their due occurrences have been inserted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F
from django.db.models.functions import Coalesce

from scheduling.core.chunks import chunks
from scheduling.core.occurrences import Plan
from scheduling.execution.due_row import DueRow
from scheduling.models import Scheduler

MOVED_PER_UPDATE = 150


def move_on(planned: Sequence[tuple[DueRow, Plan]]) -> None:
    """Set `next_run_at` of schedules whose due occurrences have been inserted."""
    moved: list[tuple[int, datetime | None, datetime | None]] = []
    plain: dict[datetime | None, list[int]] = defaultdict(list)
    finished: list[int] = []
    if off := [row.id for row, _plan in planned if not row.status]:
        # If plain SQL has paused the schedule, its pause begins with this occurrence. No sweep has seen the pause yet.
        first = Coalesce("paused_at", "next_nominal_at", F("next_run_at"))
        since = {"paused_at": first, "planned_status": False}
        Scheduler.objects.filter(pk__in=off).update(**since)
    for row, plan in planned:
        if row.date_time is not None and row.status and plan.next_run_at is None:
            finished.append(row.id)
        elif row.next_nominal_at is None and plan.next_nominal_at is None:
            plain[plan.next_run_at].append(row.id)
        else:
            moved.append((row.id, plan.next_run_at, plan.next_nominal_at))
    for instant, ids in plain.items():
        Scheduler.objects.filter(pk__in=ids).update(next_run_at=instant)
    _move_own(moved)
    if finished:
        # A one-time schedule is paused after its occurrence.
        none = {"next_run_at": None, "next_nominal_at": None}
        Scheduler.objects.filter(pk__in=finished).update(**none, status=False, planned_status=False)


def _move_own(moved: Sequence[tuple[int, datetime | None, datetime | None]]) -> None:
    """Set both instants of schedules with rules of their own. Few of them share them, so one statement sets many.

    Django would need longer for the expressions of such a statement than the database for its execution.
    """
    table = connection.ops.quote_name(Scheduler._meta.db_table)
    adapted: Any = connection.ops.adapt_datetimefield_value
    for some in chunks(moved, MOVED_PER_UPDATE):
        parts, values = list[str](), list[Any]()
        for place, name in ((1, "next_run_at"), (2, "next_nominal_at")):
            known = [(one[0], one[place]) for one in some if one[place] is not None]
            whens = "".join(" WHEN %s THEN %s" for _one in known)
            column = connection.ops.quote_name(name)
            parts.append(f"{column} = CASE id{whens} END" if known else f"{column} = NULL")
            for pk, instant in known:
                values += [pk, adapted(instant)]
        keys = [one[0] for one in some]
        marks = ", ".join(["%s"] * len(keys))
        statement = f"UPDATE {table} SET {', '.join(parts)} WHERE id IN ({marks})"  # noqa: S608 - names of columns
        with connection.cursor() as cursor:
            cursor.execute(statement, [*values, *keys])
