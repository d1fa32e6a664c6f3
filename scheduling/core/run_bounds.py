"""Decides how often a schedule runs before it is paused, and when failures in a row pause it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from scheduling.core import run_sentences as say

MOST_RUNS = 1_000_000_000
MOST_FAILURES = 100


class PausedFor(StrEnum):
    """Why a rule of the schedule has paused it."""

    NOTHING = ""
    """A person, code or plain SQL has paused it, or it is not paused."""
    RUNS = "runs"
    FAILURES = "failures"


def runs_before(counted: object, counted_for: object, most: int) -> int:
    """How many runs count towards the bound `most`.

    The count begins anew if the bound has been changed since, and if the schedule has been resumed after its last run.

    Args:
        counted: how many were counted so far.
        counted_for: the bound that they were counted for; None: none was counted.
    """
    if counted_for != most or type(counted) is not int or not 0 <= counted < most:
        return 0
    return counted


def is_bound(most: object) -> bool:
    """Whether a value can be a bound. Plain SQL can write any value."""
    return type(most) is int and 1 <= most <= MOST_RUNS


def ran_often(most: int) -> str:
    """Why a schedule is paused that has run as often as it may."""
    return say.RAN_ONCE.format() if most == 1 else say.RAN_OFTEN.format(count=f"{most:,}")


def fails_in_a_row(has_failed: Sequence[bool], most: object) -> bool:
    """Whether failures in a row pause a schedule.

    Args:
        has_failed: whether each of its last runs has failed, the newest first.
        most: so many failures in a row pause it.
    """
    if type(most) is not int or not 1 <= most <= MOST_FAILURES:
        return False
    return len(has_failed) >= most and all(has_failed[:most])


def failed_in_a_row(most: int, last: int) -> str:
    """Why a schedule is paused whose runs fail.

    The error itself is not part of the reason. The schedule may get another user group later, whose members read the
    reason, but may not see the run.

    Args:
        last: the id of the last execution that failed.
    """
    return (say.FAILED_ONCE if most == 1 else say.FAILED_OFTEN).format(count=most, execution=last)
