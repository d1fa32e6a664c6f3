"""Batches: the bounds of their options, and what a batch handler has returned for each of its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.core.outcome import NonRetryableError

SMALLEST, LARGEST = 2, 1_000
"""The bounds of `batch_size`."""

LONGEST_WAIT = 60.0
"""The longest `batch_wait`, in seconds."""

USUAL_WAIT = 1.0


class WrongResultCount(NonRetryableError):
    """A batch handler has returned more or fewer results than it got runs. It is unknown which run ended how."""


@dataclass(frozen=True)
class Batching:
    """How the runs of a batch handler are gathered.

    Args:
        size: so many runs are given to one call at most.
        wait: so many seconds after its first run, a batch that is not full is called.
    """

    size: int
    wait: float = USUAL_WAIT


def batch_problem(size: object, wait: object) -> str:
    """Why these options cannot be used; empty if they can."""
    if isinstance(size, bool) or not isinstance(size, int) or not SMALLEST <= size <= LARGEST:
        return f"batch_size is a whole number from {SMALLEST} to {LARGEST:,}, not {size!r:.50}."
    is_number = isinstance(wait, int | float) and not isinstance(wait, bool) and math.isfinite(wait)
    if not is_number or not 0 <= wait <= LONGEST_WAIT:  # type: ignore[operator]
        return f"batch_wait is a number of seconds from 0 to {LONGEST_WAIT:g}, not {wait!r:.50}."
    return ""


def results_of(returned: Any, count: int) -> Sequence[Any] | None:
    """The entries that a batch handler has returned, one for each run; None if it has returned no list.

    Args:
        count: how many runs the handler got.

    Raises:
        WrongResultCount: it has returned a list of another length.
    """
    if not isinstance(returned, list | tuple):
        return None
    entries = list(returned)
    if len(entries) != count:
        raise WrongResultCount(
            f"The handler has returned {len(entries):,} results for {count:,} runs. Return one for each run, in their "
            "order, or no list."
        )
    return entries


def error_in(entry: Any) -> BaseException | None:
    """The error with which one run of a batch ends; None if the entry is the result of a run that has succeeded.

    An error class stands for its instance, as after `raise`.
    """
    if isinstance(entry, BaseException):
        return entry
    if isinstance(entry, type) and issubclass(entry, BaseException):
        try:
            return entry()
        except Exception as error:  # the class needs arguments
            return error
    return None
