"""Figures about the last runs of a schedule: durations and the success rate."""

from __future__ import annotations

import math
from collections.abc import Iterable

from scheduling.core.lifecycle import State
from scheduling.models.last_runs import FAILURES, Ran


def percentile(values: Iterable[float], share: float) -> float | None:
    """The nearest-rank percentile, which is always one of the values; None if there are no values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def durations(runs: Iterable[Ran]) -> list[float]:
    """The durations of the successful runs, in seconds.

    Failed runs are left out, because a failure says little about how long the work takes.
    """
    return [run.seconds for run in runs if run.state == State.SUCCEEDED.value and run.seconds is not None]


def p95(runs: Iterable[Ran]) -> float | None:
    """The 95th percentile of the durations of successful runs, in seconds; None if no run succeeded."""
    return percentile(durations(runs), 0.95)


def success_rate(runs: Iterable[Ran]) -> float | None:
    """Successful runs as a share of the runs that succeeded or failed, from 0 to 1; None if there are no such runs."""
    ended = [run.state == State.SUCCEEDED.value for run in runs if run.state in {State.SUCCEEDED.value, *FAILURES}]
    return sum(ended) / len(ended) if ended else None
