"""Tallies attempts, and ends a pass before one of its statements."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from scheduling.execution.tallying import tally_waiting

MINUTE = timedelta(seconds=60)


class Killed(BaseException):
    """Ends a pass before one of its statements."""


class KillBefore:
    """An execute wrapper that ends the process, as it were, before a statement."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, execute: Any, *arguments: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise Killed
        return execute(*arguments)


def tally_all(now: datetime) -> int:
    """Let a producer look, and count what it has seen a minute later."""
    return tally_waiting(now) + tally_waiting(now + MINUTE)
