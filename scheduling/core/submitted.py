"""What a caller gets who asks for a run."""

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
