"""Compares the next runs of a schedule before and after an edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Mark(StrEnum):
    """What an edit does to a run. Scripts compare the values, so they never change."""

    SAME = "same"
    CHANGED = "changed"
    """The run takes place at another instant."""
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class RunChange:
    """A run before and after an edit. At most one of the two instants is None."""

    before: datetime | None
    after: datetime | None
    mark: Mark

    @property
    def at(self) -> datetime:
        """The earlier instant of the two, by which the changes are ordered."""
        return min(instant for instant in (self.before, self.after) if instant is not None)


_Item = tuple[datetime, Mark]
"""An instant that both lists have (SAME), or only the later one (ADDED) or the earlier one (REMOVED)."""


def compare(before: Sequence[datetime], after: Sequence[datetime], limit: int) -> list[RunChange]:
    """Put two ascending lists of instants side by side, in the order of time.

    A run that only one list has is taken for the changed one of the other list if it is the nearest one, and no run
    that both lists have lies between them. A list with `limit` instants goes on unseen. So nothing is told of the time
    after its end.

    Args:
        limit: how many instants a list has at the most.
    """
    ends = [instants[-1] for instants in (before, after) if len(instants) >= limit]
    old, new = set(before), set(after)
    merged: list[_Item] = [
        (instant, Mark.SAME if instant in old and instant in new else Mark.REMOVED if instant in old else Mark.ADDED)
        for instant in sorted(old | new)
    ]
    return [found for found in _paired(merged) if not ends or found.at <= min(ends)]


def _paired(items: Sequence[_Item]) -> Iterator[RunChange]:
    place = 0
    while place < len(items):
        instant, mark = items[place]
        if mark is Mark.SAME:
            yield RunChange(instant, instant, mark)
        elif _is_pair(items, place):
            other = items[place + 1][0]
            before, after = (instant, other) if mark is Mark.REMOVED else (other, instant)
            yield RunChange(before, after, Mark.CHANGED)
            place += 1
        elif mark is Mark.REMOVED:
            yield RunChange(instant, None, mark)
        else:
            yield RunChange(None, instant, mark)
        place += 1


def _is_pair(items: Sequence[_Item], place: int) -> bool:
    """Whether the next item is the other side of this one, and no item after it is nearer to it."""
    if place + 1 >= len(items):
        return False
    (here, mark), (there, other) = items[place], items[place + 1]
    if {mark, other} != {Mark.ADDED, Mark.REMOVED}:
        return False
    if place + 2 >= len(items) or items[place + 2][1] is not mark:
        return True
    return there - here <= items[place + 2][0] - there
