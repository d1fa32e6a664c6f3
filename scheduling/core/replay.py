"""Replay: what a canary's fate means for the others, and how many of them are due."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduling.core.lifecycle import State

LATE = timedelta(minutes=1)
"""A spread that is later than this goes on from now: what an outage kept back does not come in one burst."""


@dataclass(frozen=True)
class Wait:
    """Its canary has not come to an end."""


@dataclass(frozen=True)
class Release:
    """Its canary succeeded: the others may follow."""


@dataclass(frozen=True)
class Stop:
    """No other is sent; `reason` is a sentence for operators."""

    reason: str


def verdict(state: str | None, failed: str | None) -> Wait | Release | Stop:
    """What follows from the canary as it stands.

    Args:
        state: of its row; None when that is gone.
        failed: the error of an attempt that failed for good since it was sent, None if there is none. It
            counts whatever the state: somebody may have sent the canary again by hand meanwhile.
    """
    if failed is not None:
        return Stop(f"The canary failed: {failed}")
    match state:
        case None:
            return Stop("The canary's row is gone, so nobody can say how it ended.")
        case State.SUCCEEDED:
            return Release()
        case State.CANCELLED:
            return Stop("The canary was cancelled.")
        case State.DISCARDED:
            return Stop("The canary was discarded.")
        case State.FAILED:
            return Stop("The canary failed.")
        case _:
            return Wait()


def due(next_at: datetime, step: timedelta, left: int, now: datetime, most: int) -> tuple[int, datetime]:
    """How many of those that are left may be sent now, at most `most`, and when the one after them may.

    Args:
        step: between one and the next; zero sends them all.
    """
    if not step:
        return min(left, most), next_at
    if now - next_at > LATE:
        next_at = now
    count = min(left, most, max((now - next_at) // step + 1, 0))
    return count, next_at + step * count
