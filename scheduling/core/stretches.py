"""Walks over the nominal instants of a schedule: one by one where they are free, else many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from scheduling.core.nominal import TICK, NominalTimes
from scheduling.core.timing import Exclusions

MOST_CHAINED = 1_000
"""So many exclusions that follow each other without a gap are looked at. After more, no end is known."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Occurrences that follow each other and share their fate.

    Args:
        first, last: their nominal instants. `last` is None if there is no last one.
        count: how many they are; 0 if there is no last one.
        why: why a calendar excludes them; None for one occurrence that is free.
        end: when the exclusion ends; None if it never does, and for an occurrence that is free.
    """

    first: datetime
    last: datetime | None
    count: int
    why: str | None = None
    end: datetime | None = None


def walk(times: NominalTimes, excluded: Exclusions | None, first: datetime, *, together: bool) -> Iterator[Stretch]:
    """The stretches from an occurrence on.

    Args:
        first: the nominal instant of the occurrence. It counts as one even if the times do not name it any more.
        together: whether exclusions that follow each other without a gap count as one, with the reason of the first.
    """
    following: datetime | None = first
    while following is not None:
        stretch = _stretch(times, excluded, following, together)
        yield stretch
        if stretch.last is None:
            return
        following = times.after(stretch.last)


def _stretch(times: NominalTimes, excluded: Exclusions | None, first: datetime, together: bool) -> Stretch:
    blocked = excluded(first) if excluded is not None else None
    if blocked is None or excluded is None:
        return Stretch(first, first, 1)
    end = _end(excluded, blocked.until) if together else blocked.until
    if end is not None and end <= first:
        end = first + TICK  # an end that is not later would never be passed
    if end is None and times.end is None:
        return Stretch(first, None, 0, blocked.reason)
    last = times.last(first, times.end if end is None else end - TICK) or first  # type: ignore[arg-type]
    return Stretch(first, last, 1 + times.count(first, last), blocked.reason, end)


def _end(excluded: Exclusions, until: datetime | None) -> datetime | None:
    """When nothing excludes any longer what is excluded now. None if no end is known."""
    for _number in range(MOST_CHAINED):
        if until is None or (further := excluded(until)) is None:
            return until
        until = further.until if further.until is not None and further.until > until else None
    return None
