"""What a caller gets who asks for a run or for a schedule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Submitted:
    """A run that was asked for.

    Args:
        id: the primary key of its execution.
        is_new: False if the key refused a second run. Then `id` is that of the first one.
    """

    id: int
    is_new: bool


@dataclass(frozen=True)
class Scheduled:
    """A schedule that code has asked for.

    Args:
        id: the primary key of the schedule.
        is_new: whether it was made by this call.
        changed: the columns that this call has changed, in alphabetical order; empty if it is new.
    """

    id: int
    is_new: bool
    changed: tuple[str, ...] = ()
