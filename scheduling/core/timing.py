"""The rules of a schedule that say when an occurrence starts, and whether: spread, missed runs, bounds, calendars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

EXCLUDED_FOR_EVER = timedelta(days=3_653)
"""What is excluded for longer than 10 years counts as excluded for ever. Nothing later is looked for."""

LONGEST_SPREAD = 86_400
"""Seconds."""
MOST_CAUGHT_UP = 1_000
USUALLY_CAUGHT_UP = 100
"""How many missed occurrences run at most, if they all run and no number is given."""
LONGEST_WITHIN = 366 * 86_400
"""Seconds."""
IN_TIME = timedelta(seconds=60)
"""An occurrence that has been due for longer than this is late. If missed runs are not caught up, it does not run."""


class MissedRuns(StrEnum):
    """What becomes of the occurrences that fell due while no producer ran."""

    LATEST = "latest"
    """The latest one runs."""
    NONE = "none"
    """None runs that is late."""
    ALL = "all"
    """All run, at most so many as the cap says: the newest."""


class OnExcluded(StrEnum):
    """What becomes of an occurrence that a calendar excludes."""

    SKIP = "skip"
    """It does not run."""
    HOLD = "hold"
    """The latest one of those that are excluded together runs when the exclusion ends."""


class Blocked(Protocol):
    """An instant is excluded."""

    @property
    def until(self) -> datetime | None:
        """The end of the exclusion that holds at the instant, in UTC; None if no end is known."""

    @property
    def reason(self) -> str: ...


Exclusions = Callable[[datetime], Blocked | None]
"""Says of an instant (aware) whether a calendar excludes it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The rules of one schedule, besides its times. The default of each changes nothing.

    Args:
        spread: the window over which starts are spread; 0 for none.
        each: whether each instant has an offset of its own.
        cap: how many missed occurrences run at most, with `ALL`.
        within: how old a missed occurrence may be.
        excluded: the calendar; None if the schedule has none.
    """

    within: timedelta
    spread: timedelta = timedelta(0)
    each: bool = False
    missed_runs: MissedRuns = MissedRuns.LATEST
    cap: int = USUALLY_CAUGHT_UP
    on_excluded: OnExcluded = OnExcluded.SKIP
    excluded: Exclusions | None = None

    @property
    def longest_wait(self) -> timedelta:
        """How old an occurrence may be when it starts."""
        return IN_TIME if self.missed_runs is MissedRuns.NONE else self.within

    @property
    def most_runs(self) -> int:
        """How many occurrences that are due at once may run."""
        return self.cap if self.missed_runs is MissedRuns.ALL else 1
