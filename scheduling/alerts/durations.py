"""How long the runs of schedules usually take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from scheduling.core.durations import p95
from scheduling.models.last_runs import durations, last_runs
from scheduling.models.visibility import EVERYTHING
from scheduling.processes.database import is_away


class Durations(list[float]):
    """The durations of the last successful runs of a schedule, in seconds."""

    @cached_property
    def p95(self) -> float | None:
        """Their 95th percentile; None if there are too few."""
        return p95(self)


def read_durations(schedules: Sequence[int]) -> dict[int, Durations]:
    """The durations for each schedule. A schedule with unreadable runs has none.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    if not schedules:
        return {}
    try:
        return {pk: Durations(durations(runs)) for pk, runs in last_runs(schedules, EVERYTHING, ends=False).items()}
    except Exception as error:
        if is_away(error):
            raise
        if len(schedules) == 1:
            return {schedules[0]: Durations()}
    return {pk: found for schedule in schedules for pk, found in read_durations([schedule]).items()}
