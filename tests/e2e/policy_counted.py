"""Gives instants to the skipped rows that count them, so that each row gets as many as it counts, if it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.e2e.policy_rows import Row


class Counted:
    """The rows that count several instants. Each has the first of them itself.

    Args:
        may_count: whether the reason of a row is right for an instant.
    """

    def __init__(self, rows: Sequence[Row], may_count: Callable[[Row, int], bool]) -> None:
        self._rows, self._may_count = rows, may_count
        self._given: dict[int, list[int]] = {row.pk: [] for row in rows}

    def give(self, at: int) -> bool:
        """Give an instant to a row. An instant that was given stays given, but perhaps to another row."""
        return self._give(at, set())

    def left(self) -> Iterator[tuple[Row, int]]:
        """The rows that have got too few, and how many they lack."""
        for row in self._rows:
            if lacks := row.missed - 1 - len(self._given[row.pk]):
                yield row, lacks

    def _give(self, at: int, seen: set[int]) -> bool:
        for row in self._rows:
            if row.pk not in seen and row.at < at <= row.claimed and self._may_count(row, at):
                seen.add(row.pk)
                if self._take(row, at, seen):
                    return True
        return False

    def _take(self, row: Row, at: int, seen: set[int]) -> bool:
        """Give an instant to a row. If the row has enough, another row must take one of its instants."""
        mine = self._given[row.pk]
        if len(mine) < row.missed - 1:
            mine.append(at)
            return True
        for place, other in enumerate(mine):
            if self._give(other, seen):
                mine[place] = at
                return True
        return False
