"""Origin: what an execution was made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Origin(NamedTuple):
    """The target, the schedule and the group of an execution. They determine how it is run."""

    type: str
    target_id: int
    scheduler_id: int | None
    group_id: int | None


Wanted = Callable[[Origin], bool]
"""Whether executions of this origin are wanted."""
