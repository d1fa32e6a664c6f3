"""Asks in one statement whether the sweeps have anything to do that seldom have.

A quiet round of a producer is most rounds, and a question of each sweep would be a round trip to the database server.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduling.execution import backfill_sweep, skip_tallying, start_deadlines
from scheduling.inbox import replay_sweep
from scheduling.models import Scheduler
from scheduling.models.plan import PlanState
from scheduling.models.prepared import any_of, has_any_rows
from scheduling.processes.database import is_away
from scheduling.producer import changed_calendars, lost_leases, open_breakers

ANY_STALE = any_of(lambda _now: Scheduler.objects.filter(plan_state=PlanState.STALE).order_by("plan_state", "pk"))


def is_quiet(now: datetime, lost_after: float | None) -> bool:
    """Whether none of these sweeps has anything to do: stale schedules, changed calendars, lost leases, open breakers,
    start deadlines, replays, backfills, and skipped occurrences that are not counted yet.

    Args:
        lost_after: see `sweep`.

    Raises:
        django.db.DatabaseError: the database is away.
    """
    questions = [
        (ANY_STALE, now),
        (changed_calendars.ANY_CHANGED, now),
        (open_breakers.ANY_OPEN, now - open_breakers.LATE_ARRIVALS),
        (start_deadlines.ANY_DUE, now),
        (replay_sweep.ANY_OPEN, now),
        (backfill_sweep.ANY_DUE, now),
        (skip_tallying.ANY, now),
    ]
    if lost_after is not None:
        questions.append((lost_leases.ANY_LOST, now - timedelta(seconds=lost_after)))
    try:
        return not has_any_rows(questions)
    except Exception as error:
        if is_away(error):
            raise
        return False  # each sweep asks by itself, and handles what it cannot read
