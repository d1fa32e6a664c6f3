"""The delays of the wait queues, and the choice of the wait queue for a delay."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable

LADDER = (
    1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 90, 120, 150, 180, 240, 300, 360, 450, 600,
    750, 900, 1200, 1500, 1800, 2400, 2700, 3600,
)  # fmt: skip
"""The delays, in seconds, of the wait queues that always exist. From 3 s on, each delay is at most a third longer than
the previous delay.

The wait queues of one work queue are called its ladder; one wait queue is a rung."""


def whole_seconds(delays_ms: Iterable[int]) -> set[int]:
    """The delays rounded up to whole seconds. A delay of 0 is left out, because it needs no wait queue."""
    return {math.ceil(delay / 1000) for delay in delays_ms if delay > 0}


def rung_for(delay_ms: int, rungs: Iterable[int], spread: Callable[[], float] | None = None) -> int:
    """The seconds that a retry will wait; 0 if it does not wait.

    Args:
        delay_ms: the wanted delay.
        rungs: the delays, in seconds, of the existing wait queues.
        spread: a function that returns a random number in [0, 1), or None. With None, the delay is rounded up. Pass a
            function if the delay was drawn at random. The delay is then rounded up or down at random, and the mean
            stays the same. If all random delays were rounded up, many retries would be due at the same time.
    """
    if delay_ms <= 0:
        return 0
    steps = sorted(rungs)
    wanted = delay_ms / 1000
    upper = min(bisect_left(steps, wanted), len(steps) - 1)
    lower = bisect_right(steps, wanted) - 1
    if spread is None or lower < 0 or lower == upper:
        return steps[upper]
    share = (wanted - steps[lower]) / (steps[upper] - steps[lower])
    return steps[upper] if spread() < share else steps[lower]
