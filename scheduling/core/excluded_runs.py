"""Finds the next occurrences of a schedule that a calendar or a freeze excludes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from scheduling.core.calendars import Blocked
from scheduling.core.timing import EXCLUDED_FOR_EVER

_TICK = timedelta(microseconds=1)

MOST_STEPS = 2_000
"""So many occurrences and exclusions are compared at most. So a search lasts only milliseconds."""


class Excludes(Protocol):
    """What excludes instants."""

    def blocked(self, instant: datetime) -> Blocked | None:
        """Why an instant is excluded; None if it is not."""

    def first_from(self, after: datetime, until: datetime) -> datetime | None:
        """The first excluded instant in [after, until)."""


@dataclass(frozen=True)
class Freeze:
    """A pause of the whole site, as if it were a window of a calendar.

    Args:
        until: its end; None if a person ends it.
    """

    since: datetime
    until: datetime | None
    reason: str

    def blocked(self, instant: datetime) -> Blocked | None:
        """Whether the instant lies in the freeze."""
        inside = self.since <= instant and (self.until is None or instant < self.until)
        return Blocked(self.until, self.reason) if inside else None

    def first_from(self, after: datetime, until: datetime) -> datetime | None:
        """The beginning of the freeze, or `after` if it has begun."""
        first = max(after, self.since)
        return first if first < until and self.blocked(first) is not None else None


@dataclass(frozen=True)
class ExcludedRun:
    """An occurrence that is excluded.

    Args:
        source: the place of what excludes it among the sources that were asked.
    """

    instant: datetime
    blocked: Blocked
    source: int


def excluded_runs(
    next_after: Callable[[datetime], datetime | None], sources: Sequence[Excludes], now: datetime, count: int
) -> Iterator[ExcludedRun]:
    """The next excluded occurrences after `now`, ascending, at most `count`. The first source that excludes one counts.

    Args:
        next_after: the first occurrence later than an instant; None if there is none.
    """
    here, until, found = now, now + EXCLUDED_FOR_EVER, 0
    for _step in range(MOST_STEPS):
        instant = next_after(here)
        if found == count or instant is None or instant >= until:
            return
        blocked = next(
            ((number, why) for number, source in enumerate(sources) if (why := source.blocked(instant)) is not None),
            None,
        )
        if blocked is not None:
            found += 1
            yield ExcludedRun(instant, blocked[1], blocked[0])
            here = instant
            continue
        # What lies before the next exclusion is not excluded, and need not be looked at.
        starts = [first for source in sources if (first := source.first_from(instant, until)) is not None]
        if not starts:
            return
        here = max(min(starts) - _TICK, instant)
