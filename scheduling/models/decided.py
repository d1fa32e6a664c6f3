"""Tells up to when the occurrences of a schedule are decided, for a process whose clock is behind."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from scheduling.core.cron import CronError, ZoneError
from scheduling.core.nominal import TICK
from scheduling.models.own_timing import Former, assigned_of

MOST_BEHIND = timedelta(seconds=60)
"""A clock may be behind by so much: a process has read it before it waited for the row, or the clocks of two hosts
differ. An instant that lies further ahead is not believed: a clock was wrong, or plain SQL has written it."""


def not_before(row: Any, now: datetime) -> datetime:
    """The instant at which to plan a schedule: `now`, or later, if its occurrences are on record up to a later instant.

    If it were planned from an earlier instant, an occurrence would be due again that another process has put on record
    together with others, so that no execution has its key.

    Args:
        row: the stored schedule, with its former plan. Its row is locked.
    """
    known = (row.left_out_since, _edited_since(row), _last_decided(row, now))
    return max([now, *(at for at in known if at is not None and now < at <= now + MOST_BEHIND)])


def _edited_since(row: Any) -> datetime | None:
    """When an edit has kept the occurrence that is due; None if there is none. What follows is later than the edit."""
    first = row.next_nominal_at or row.next_run_at
    is_kept = first is not None and row.planned_at is not None and first <= row.planned_at
    return row.planned_at if is_kept else None


def _last_decided(row: Any, now: datetime) -> datetime | None:
    """The occurrence before the next one, by the former times, if it is later than now; None if it is not."""
    first = row.next_nominal_at or row.next_run_at
    if first is not None and first <= now:
        return None  # it is due and not decided
    former = Former(row)
    if former.date_time is not None or not former.schedule:
        return None
    try:
        times = assigned_of(former, None).times
        if first is not None:
            last = times.last(now, first - TICK)
            return last if last is not None and times.after(last) == first else None
        # No occurrence follows, because its end has passed. One that is paused or set aside has no next one either.
        return times.last(now, now + MOST_BEHIND) if former.status and not row.plan_error else None
    except (CronError, ZoneError, ValueError):
        return None  # plain SQL wrote the former times, and no producer could plan them
