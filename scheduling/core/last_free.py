"""Finds the last occurrence of a span that a calendar does not exclude."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol

from scheduling.core.calendars import Blocked, Excluded
from scheduling.core.nominal import TICK, NominalTimes

MOST_STEPS = 1_000
"""So many exclusions are looked at, one after the other. If there are more, the one before them counts as free."""

_FIRST_LOOK, _LONGEST_LOOK = timedelta(days=1), timedelta(days=366)


class Calendar(Protocol):
    """What excludes instants (`core.calendars.ExclusionCalendar`)."""

    def blocked(self, instant: datetime) -> Blocked | None:
        """Why an instant is excluded; None if it is not."""

    def exclusions(self, after: datetime, until: datetime) -> Iterator[Excluded]:
        """The exclusions in [after, until), ascending. The first begins at `after`, if it has begun earlier."""


def last_free(times: NominalTimes, calendar: Calendar, after: datetime, until: datetime) -> datetime | None:
    """The last nominal instant in (after, until] that the calendar does not exclude; None if there is none."""
    found, span = times.last(after, until), _FIRST_LOOK
    for _step in range(MOST_STEPS):
        if found is None or calendar.blocked(found) is None:
            return found
        # A calendar is read forwards, so the look goes back further each time.
        newest = deque(calendar.exclusions(max(after, found - span), found + TICK), maxlen=1)
        found = times.last(after, (newest[0].start if newest else found) - TICK)
        span = min(span * 2, _LONGEST_LOOK)
    return found
