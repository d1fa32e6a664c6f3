"""How long an attempt took, how long runs of a schedule usually take, and when a run is slower than usual."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduling.core.lifecycle import State

ENDED_LATER = frozenset({State.FAILED.value, State.DISCARDED.value, State.CANCELLED.value})
"""In these states, `finished_at` of an execution may be later than the end of its last attempt: a failure waits in the
inbox until it is discarded, and a retry that waits can be cancelled or set aside."""

RUNS_FOR_P95 = 20
"""With fewer runs, the 95th percentile is the longest run, so one bad night would become "usual"."""

SLOW_TIMES = 3
"""A run is slower than usual if it takes at least this many times the median."""
SLOW_SECONDS = 1.0
"""A run is slower than usual only if it takes at least this much longer than the median. Runs of a few milliseconds
differ by large factors for no reason."""
RUNS_FOR_SLOW = 5
"""With fewer runs, nothing is called slower than usual."""


@dataclass(frozen=True, slots=True)
class Usual:
    """How long runs of a schedule usually take, in seconds.

    Args:
        median: half of the runs take at most this long.
        limit: a run that takes longer takes longer than usual: the 95th percentile, or with fewer than `RUNS_FOR_P95`
            runs twice the median.
        runs: how many runs were looked at.
    """

    median: float
    limit: float
    runs: int

    def times(self, seconds: float) -> float | None:
        """How many times the median a run took, if it was slower than usual; otherwise None."""
        if self.runs < RUNS_FOR_SLOW or seconds < self.median * SLOW_TIMES or seconds < self.median + SLOW_SECONDS:
            return None
        return seconds / max(self.median, 0.001)


def percentile(values: Iterable[float], share: float) -> float | None:
    """The nearest-rank percentile, which is always one of the values; None if there are no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def p95(values: Sequence[float]) -> float | None:
    """The 95th percentile; None with fewer than `RUNS_FOR_P95` values."""
    return percentile(values, 0.95) if len(values) >= RUNS_FOR_P95 else None


def usual(values: Sequence[float]) -> Usual | None:
    """The usual duration, from the durations of successful runs in seconds; None if there are none."""
    median = percentile(values, 0.5)
    if median is None:
        return None
    high = p95(values)
    return Usual(median, 2 * median if high is None else high, len(values))


def attempt_end(state: str, finished_at: datetime | None, recorded: datetime | None) -> datetime | None:
    """When the last attempt of an execution ended; None if it has not ended, or if that is not known.

    Args:
        finished_at: the end of the execution.
        recorded: the end of the last attempt according to its own record, if there is one.
    """
    if state not in ENDED_LATER or finished_at is None:
        return finished_at
    if recorded is not None:
        return recorded
    return finished_at if state == State.FAILED.value else None
