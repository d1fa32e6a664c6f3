"""Figures about the last runs of a schedule: durations and the success rate."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from scheduling.core.durations import Usual, percentile
from scheduling.core.durations import usual as usual_of
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.models.last_runs import FAILURES, Ran, durations

__all__ = ["durations", "percentile", "success_rate", "told_at", "usual"]


def usual(runs: Iterable[Ran]) -> Usual | None:
    """How long the runs usually take; None if no run succeeded."""
    return usual_of(durations(runs))


def success_rate(runs: Iterable[Ran]) -> float | None:
    """Successful runs as a share of the runs that succeeded or failed, from 0 to 1; None if there are no such runs."""
    ended = [run.state == State.SUCCEEDED.value for run in runs if run.state in {State.SUCCEEDED.value, *FAILURES}]
    return sum(ended) / len(ended) if ended else None


def told_at(run: Ran | SchedulerExecution) -> datetime:
    """The instant from which pages count "5 min ago" for the last result of a schedule.

    It is the end of a run. A skipped occurrence counts from the time at which it was due, not from the time at which it
    was recorded, because an outage or a pause is recorded hours later.
    """
    if run.state == State.SKIPPED.value:
        return run.scheduled_at
    return run.finished_at or getattr(run, "started_at", None) or run.scheduled_at
