"""How many schedules start in each minute, and which minutes near a crowded one are emptier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

MINUTE = timedelta(minutes=1)
NEAR = 30
"""Emptier minutes are looked for within so many minutes."""


@dataclass(frozen=True)
class Load:
    """The starts in each minute of a span of time.

    Args:
        start: the beginning of the first minute, in UTC.
        counts: how many schedules start in each minute.
        is_cut: whether more schedules are due than were looked at. Then the span ends with the minute of the first one
            that was not looked at. So the counts are complete, except that of the last minute, which is too low.
    """

    start: datetime
    counts: tuple[int, ...]
    is_cut: bool = False

    @property
    def end(self) -> datetime:
        """The end of the last minute."""
        return self.start + len(self.counts) * MINUTE

    def place(self, instant: datetime) -> int | None:
        """The minute of an instant; None if the span does not have it."""
        number = (instant - self.start) // MINUTE
        return number if 0 <= number < len(self.counts) else None

    def at(self, place: int) -> datetime:
        """The beginning of a minute."""
        return self.start + place * MINUTE

    def changed(self, instants: Iterable[datetime], by: int) -> Load:
        """The load with more or fewer starts at these instants."""
        counts = list(self.counts)
        for place in {self.place(instant) for instant in instants}:
            if place is not None:
                counts[place] = max(counts[place] + by, 0)
        return replace(self, counts=tuple(counts))

    def most_crowded(self, among: Iterable[int], most: int) -> list[int]:
        """The minutes with the most starts, the fullest first. Of equal ones, the earlier one is first."""
        return sorted(among, key=lambda place: (-self.counts[place], place))[:most]

    def emptier_near(self, place: int, most: int) -> list[int]:
        """The minutes within `NEAR` minutes with the fewest starts: fewer than this one. Of equal ones, the nearer."""
        near = range(max(place - NEAR, 0), min(place + NEAR + 1, len(self.counts) - self.is_cut))
        better = [other for other in near if self.counts[other] < self.counts[place]]
        return sorted(better, key=lambda other: (self.counts[other], abs(other - place), other))[:most]


def load_of(start: datetime, minutes: int, starts: Iterable[tuple[Sequence[datetime], int]], *, is_cut: bool) -> Load:
    """Count the starts.

    Args:
        starts: the instants of schedules with the same times, and the number of these schedules.
    """
    counts = [0] * minutes
    for instants, number in starts:
        for instant in instants:
            place = (instant - start) // MINUTE
            if 0 <= place < minutes:
                counts[place] += number
    return Load(start, tuple(counts), is_cut)
