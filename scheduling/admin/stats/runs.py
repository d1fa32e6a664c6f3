"""Figures about the last runs of a schedule: durations and the success rate."""

from __future__ import annotations

from collections.abc import Iterable

from scheduling.core.durations import Usual
from scheduling.core.durations import percentile as percentile
from scheduling.core.durations import usual as usual_of
from scheduling.core.lifecycle import State
from scheduling.models.last_runs import FAILURES, Ran


def durations(runs: Iterable[Ran]) -> list[float]:
    """The durations of the successful runs, in seconds.

    Failed runs are left out, because a failure says little about how long the work takes.
    """
    return [run.seconds for run in runs if run.state == State.SUCCEEDED.value and run.seconds is not None]


def usual(runs: Iterable[Ran]) -> Usual | None:
    """How long the runs usually take; None if no run succeeded."""
    return usual_of(durations(runs))


def success_rate(runs: Iterable[Ran]) -> float | None:
    """Successful runs as a share of the runs that succeeded or failed, from 0 to 1; None if there are no such runs."""
    ended = [run.state == State.SUCCEEDED.value for run in runs if run.state in {State.SUCCEEDED.value, *FAILURES}]
    return sum(ended) / len(ended) if ended else None
