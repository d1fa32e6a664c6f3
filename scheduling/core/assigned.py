"""When the occurrences of a schedule with rules of its own start: at a nominal instant, spread, or when a hold ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from scheduling.core.nominal import TICK, NominalTimes
from scheduling.core.spread_offset import SpreadOffset
from scheduling.core.stretches import Stretch, walk
from scheduling.core.timing import EXCLUDED_FOR_EVER, OnExcluded, Timing

MOST_SEARCHED = 1_000
"""So many stretches are searched for the next occurrence that runs. Then the search goes on at the last of them."""

MOST_UNTIL_NEVER = 4_000
"""So many stretches are searched if they reach so far: a day has at most one of them then."""
FEWEST_UNTIL_NEVER = 100
"""Of rare times, such as 29 February, at least so many stretches are searched, however far they reach."""


@dataclass(frozen=True, slots=True)
class Wake:
    """When a producer looks at a schedule next.

    Args:
        nominal: the first nominal instant that is not on record yet; None if there is none.
        at: when it looks; None if the schedule never runs again.
    """

    nominal: datetime | None
    at: datetime | None


NEVER = Wake(None, None)


@dataclass(frozen=True, slots=True)
class Assigned:
    """The assigned times of one schedule.

    Args:
        schedule: its number; None if it has none yet.
    """

    times: NominalTimes
    timing: Timing
    schedule: int | None = None

    @property
    def offset(self) -> SpreadOffset:
        return SpreadOffset(self.schedule, self.timing.spread, self.timing.each)

    @property
    def holds(self) -> bool:
        return self.timing.on_excluded is OnExcluded.HOLD

    def since_edit(self, first: datetime, edited_at: datetime | None) -> Assigned:
        """The same rules from the occurrence `first` on, for a schedule that has them since `edited_at`.

        If `first` is not later, it is an occurrence of the former times that the edit has kept. The nominal instants
        that follow it are later than `edited_at`.
        """
        if edited_at is None or first > edited_at:
            return self
        return Assigned(self.times.later_than(edited_at), self.timing, self.schedule)

    def at(self, nominal: datetime) -> datetime:
        """When an occurrence starts that nothing holds."""
        return self._moved(nominal, nominal)

    def _moved(self, nominal: datetime, start: datetime) -> datetime:
        if not self.timing.spread:
            return start
        following = self.times.after(nominal) if self.timing.each else None
        return start + self.offset.at(nominal, None if following is None else following - start)

    def reached(self, first: datetime, now: datetime) -> datetime | None:
        """The last occurrence from `first` on whose assigned time has come; None if not even the first one has."""
        if not self.timing.spread or not self.timing.each:
            until = now - self.offset.stable
            if until < first:
                return None
            following = self.times.after(first)
            if following is None or following > until:
                return first  # so it is if a producer runs
            return self.times.last(first, until) or first
        if now < first:
            return None
        last = self.times.last(first, now) or first
        if self.at(last) <= now:
            return last
        # An occurrence starts before the next one is due, so the one before has started.
        return None if last == first else self.times.last(first, last - TICK) or first

    def release(self, held: Stretch) -> tuple[datetime | None, bool]:
        """When the last of the occurrences that a calendar holds starts, and whether it gives way.

        Returns:
            None if the hold never ends. The bool is true if another occurrence is due at the end of the hold, so that
            none of those that were held runs.
        """
        if held.end is None or held.last is None:
            return None, False
        if self.times.after(held.last) == held.end:
            return self.at(held.end), True
        return self._moved(held.last, held.end), False

    def wake(self, first: datetime | None) -> Wake:
        """When the first occurrence from `first` on starts."""
        if first is None:
            return NEVER
        seen: Stretch | None = None
        for number, stretch in enumerate(self.walk(first)):
            if stretch.why is None:
                return Wake(first, self.at(stretch.first))
            if self.holds:
                return Wake(first, self.release(stretch)[0])
            seen, reach = stretch, stretch.first - first
            if number >= FEWEST_UNTIL_NEVER and reach > EXCLUDED_FOR_EVER:
                return Wake(first, None)
            is_sparse = number < MOST_UNTIL_NEVER and reach * (MOST_UNTIL_NEVER / (number + 1)) > EXCLUDED_FOR_EVER
            if number >= MOST_SEARCHED and not is_sparse:
                break
        # No occurrence runs that is in sight. The last one that is excluded still has to be put on record.
        return Wake(first, None if seen is None or seen.last is None else self.at(seen.last))

    def first_after(self, now: datetime) -> Wake:
        """When the first occurrence starts whose nominal instant is later than now."""
        return self.wake(self.times.after(now))

    def walk(self, first: datetime) -> Iterator[Stretch]:
        """The stretches from an occurrence on (`stretches.walk`)."""
        return walk(self.times, self.timing.excluded, first, together=self.holds)
