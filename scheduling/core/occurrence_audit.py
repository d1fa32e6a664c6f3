"""Compares what was due with what is on record: an instant without a record is a gap, a second record is a double.

The caller gives the instants of one schedule in the form of numbers: microseconds since 1970. A million of them then
need little memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Fault(StrEnum):
    """What is wrong with an instant."""

    GAP = "gap"
    """It was due, and no row has it or counts it."""
    TWICE = "twice"
    """Several rows have it."""
    COUNTED = "counted"
    """A row has it, and a skipped row counts it, too."""
    NOT_DUE = "not_due"
    """A row has it, but it was not due."""


class Need(StrEnum):
    """Whether an instant must be on record."""

    MUST = "must"
    MAY = "may"
    """It fell into a pause. The skipped row at the end of the pause counts it."""
    UNSURE = "unsure"
    """The schedule was changed when it was due already, so it may have run by the former plan or the new one."""


@dataclass(frozen=True, slots=True)
class Counting:
    """A skipped row that counts several occurrences.

    Args:
        first: the first of them, which the row itself has.
        last: the last of them; None if it is not known, because others lie between them.
        count: how many there are.
    """

    first: int
    last: int | None
    count: int


def micros(instant: datetime) -> int:
    """The instant as a number."""
    return (instant - EPOCH) // _MICROSECOND


def instant_of(number: int) -> datetime:
    """The instant that a number stands for."""
    return EPOCH + timedelta(microseconds=number)


def faults(
    expected: Iterable[tuple[int, Need]], rows: Sequence[int], counting: Sequence[Counting]
) -> Iterator[tuple[Fault, int]]:
    """The faults of one schedule, in the order of their instants.

    Args:
        expected: the due instants, ascending, each one once.
        rows: the instants of all rows, ascending.
        counting: those of the rows that count several occurrences, by their first ones, ascending. Their first
            instants are among `rows`, if they are not before all of them.
    """
    place, counted = 0, _Counted(counting)
    for instant, need in expected:
        while place < len(rows) and rows[place] < instant:
            yield Fault.NOT_DUE, rows[place]
            place += 1
        first = place
        while place < len(rows) and rows[place] == instant:
            place += 1
        found = counted.fault(instant, need, place - first)
        if found is not None:
            yield found, instant
    for instant in rows[place:]:
        yield Fault.NOT_DUE, instant


class _Counted:
    """Knows which of the instants, in ascending order, the skipped rows count."""

    def __init__(self, counting: Sequence[Counting]) -> None:
        self._counting, self._next = counting, 0
        self._to = -1
        """Up to here, a row with a known last occurrence counts all instants."""
        self._left: list[int] = []
        """How many occurrences each row still counts whose last one is not known; the newest row comes last."""

    def fault(self, instant: int, need: Need, number: int) -> Fault | None:
        """What is wrong with an instant that this number of rows has."""
        was_counted = instant <= self._to
        self._begin(instant)
        if number > 1:
            return Fault.TWICE
        if need is Need.UNSURE:
            return None
        if number:
            return Fault.COUNTED if was_counted else None
        if instant <= self._to or self._take():
            return None
        return Fault.GAP if need is Need.MUST else None

    def _begin(self, instant: int) -> None:
        """Take in the rows that count from this instant on, or from an earlier one."""
        while self._next < len(self._counting) and self._counting[self._next].first <= instant:
            found = self._counting[self._next]
            self._next += 1
            if found.last is not None:
                self._to = max(self._to, found.last)
            elif found.count > 1:
                self._left.append(found.count - 1)

    def _take(self) -> bool:
        """Whether a row counts the next instant without a row of its own."""
        if not self._left:
            return False
        self._left[-1] -= 1
        if not self._left[-1]:
            self._left.pop()
        return True
