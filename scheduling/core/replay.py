"""Decides whether the other executions of a replay may follow the canary, and how many may be sent now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduling.core import inbox_sentences as say
from scheduling.core.lifecycle import State

LATE = timedelta(minutes=1)
"""How late the next execution of a replay may be. If the delay is longer, the remaining executions are planned again,
starting now. Otherwise the replay would send all late executions at once."""


@dataclass(frozen=True)
class Wait:
    """The canary has not ended yet, so the other executions must wait."""


@dataclass(frozen=True)
class Release:
    """The canary succeeded, so the other executions may be sent."""


@dataclass(frozen=True)
class Stop:
    """No other execution is sent. `reason` is a sentence for operators."""

    reason: str


def verdict(state: str | None, failed: str | None) -> Wait | Release | Stop:
    """Decide from the canary's present state what happens to the other executions.

    Args:
        state: the state of the canary's row; None if the row is gone.
        failed: the error of the canary's permanent failure in this replay; None if there was no such failure. The error
            counts in every state of the row, because an operator may have republished the canary after the failure.
    """
    if failed is not None:
        return Stop(say.CANARY_FAILED_WITH.format(error=failed))
    match state:
        case None:
            return Stop(say.CANARY_GONE.format())
        case State.SUCCEEDED:
            return Release()
        case State.CANCELLED:
            return Stop(say.CANARY_CANCELLED.format())
        case State.DISCARDED:
            return Stop(say.CANARY_DISCARDED.format())
        case State.SKIPPED:
            return Stop(say.CANARY_SKIPPED.format())
        case State.FAILED:
            return Stop(say.CANARY_FAILED.format())
        case _:
            return Wait()


def due(next_at: datetime, step: timedelta, left: int, now: datetime, most: int) -> tuple[int, datetime]:
    """How many executions may be sent now, and when the next one may be sent.

    Args:
        next_at: when the next execution may be sent.
        step: the time between two executions; zero means that no execution has to wait.
        left: how many executions are not sent yet.
        most: the maximum number of executions to send now.
    """
    if not step:
        return min(left, most), next_at
    if now - next_at > LATE:
        next_at = now
    count = min(left, most, max((now - next_at) // step + 1, 0))
    return count, next_at + step * count
