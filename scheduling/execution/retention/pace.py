"""Pace: how many executions the next batch has, and when the pass ends."""

from __future__ import annotations

from collections.abc import Callable

from scheduling.core.retention import LARGEST, next_batch
from scheduling.execution.retention.pruned import Pruned

FIRST_BATCH = 50


class Pace:
    """Measures the batches of a pass, and adapts their size. Other work then never waits long for a lock.

    Args:
        done: gets the duration of the slowest batch, and `complete`.
        max_seconds: the pass ends after the batch in which this time runs out; None means no limit.
        fixed: the size of each batch; None means that the size is adapted.
        monotonic: returns seconds.
    """

    def __init__(
        self, done: Pruned, max_seconds: float | None, fixed: int | None, monotonic: Callable[[], float]
    ) -> None:
        self.size = fixed or FIRST_BATCH
        self.window = fixed or LARGEST
        """How many rows are read at once. To read rows is much faster than to remove them, and locks nothing."""
        self._done, self._fixed, self._monotonic = done, fixed, monotonic
        self._begin = monotonic()
        self._deadline = None if max_seconds is None else self._begin + max_seconds

    def end_batch(self, removed: int = 0) -> bool:
        """End a batch and begin the next one. Returns whether the pass has time for it.

        Args:
            removed: how many executions the batch should have removed; 0 if it has only read.
        """
        now = self._monotonic()
        seconds, self._begin = now - self._begin, now
        self._done.slowest = max(self._done.slowest, seconds)
        if self._fixed is None and removed:
            self.size = next_batch(self.size, seconds)
        if self._deadline is not None and now >= self._deadline:
            self._done.complete = False
        return self._done.complete
