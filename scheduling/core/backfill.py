"""Decides what a backfill does with each instant of its range, and how many runs it may make now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

PER_MINUTE = (1, 6_000)
"""The bounds of the rate: how many runs a backfill makes in a minute."""

USUAL_PER_MINUTE = 60
REASON_LENGTH = 500
MOST = (1, 10_000)
"""The bounds of the setting CRON_BACKFILL_MOST."""
MOST_SCHEDULES = 100
"""One request backfills at most so many schedules."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


class Standing(StrEnum):
    """What a backfill does with an instant. Scripts compare the values, so they never change."""

    NEW = "new"
    """It makes a run."""
    RAN = "ran"
    """The schedule has a run of this occurrence already, so it makes none."""
    MADE = "made"
    """An earlier backfill has made its run."""


@dataclass(frozen=True)
class Options:
    """How a backfill is carried out.

    Args:
        newest_first: whether the latest instant runs first.
        per_minute: how many runs it makes in a minute.
        obey_overlap: whether a schedule that runs alone stays alone. Otherwise its runs do not wait for each other.
        also_ran: whether instants run again that the schedule has run by itself.
    """

    newest_first: bool = False
    per_minute: int = USUAL_PER_MINUTE
    obey_overlap: bool = True
    also_ran: bool = False
    reason: str = ""

    @property
    def step(self) -> timedelta:
        """The time between two runs."""
        return step_of(self.per_minute)


def step_of(per_minute: int) -> timedelta:
    """The time between two runs. A rate outside of its bounds, which plain SQL can write, counts as the nearest."""
    return timedelta(minutes=1) / min(max(per_minute, PER_MINUTE[0]), PER_MINUTE[1])


def standing(*, ran: bool, made: bool, also_ran: bool) -> Standing:
    """What a backfill does with an instant.

    Args:
        ran: whether the schedule has an execution of this occurrence that was not skipped.
        made: whether a backfill has made an execution for this instant.
    """
    if made:
        return Standing.MADE
    return Standing.RAN if ran and not also_ran else Standing.NEW


def stored(instants: Iterable[datetime], *, newest_first: bool) -> list[int]:
    """The instants in the order in which they run, as whole seconds since 1970. Each instant stands once."""
    return sorted({(instant - EPOCH) // _SECOND for instant in instants}, reverse=newest_first)


def read(seconds: Sequence[int]) -> list[datetime]:
    """The instants of a stored list, in UTC.

    Raises:
        TypeError: an item is no whole number, because plain SQL has damaged the list.
        OverflowError: an item lies outside of the calendar.
    """
    if not isinstance(seconds, list) or any(type(item) is not int for item in seconds):
        raise TypeError("the list of instants is damaged")
    return [EPOCH + timedelta(seconds=item) for item in seconds]


def digest(instants: Iterable[tuple[int, Sequence[int]]]) -> str:
    """A short text that changes with each instant of each schedule. It tells whether a dry run is still true."""
    return hashlib.sha256(repr([(key, list(some)) for key, some in instants]).encode()).hexdigest()[:16]
