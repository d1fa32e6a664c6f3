"""The health of a schedule: one word that tells an operator whether the schedule needs attention."""

from __future__ import annotations

from enum import StrEnum

from scheduling.core.lifecycle import State


class Health(StrEnum):
    """The words, the most urgent first. `models.health` has the rule that finds a schedule's word."""

    FAILING = "failing"
    """The last run failed, or the schedule cannot be planned."""
    SKIPPED = "skipped"
    """The last occurrence did not run."""
    LATE = "late"
    """An occurrence is due, and no producer has claimed it."""
    NEVER_RAN = "never_ran"
    RUNNING = "running"
    """An execution waits or runs, and the last result was good."""
    HEALTHY = "healthy"
    PAUSED = "paused"
    ENDED = "ended"
    """It was active until an instant, and has no run before it any more. Its operator has asked for that."""


RESULTS = (State.SUCCEEDED.value, State.FAILED.value, State.DISCARDED.value, State.SKIPPED.value)
"""The states that say how an occurrence ended. An execution that an operator has cancelled says nothing about the
schedule. A discarded execution has failed."""
