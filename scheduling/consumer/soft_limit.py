"""Raises `SoftTimeLimit` in a handler that runs for too long, so that it can end in good order before it is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from scheduling.core.outcome import SoftTimeLimit


@contextmanager
def soft_time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `SoftTimeLimit` in the main thread if the block runs longer. None means no limit.

    The child restores the signal's handler after the run, so this function does not.
    """
    if seconds is None:
        yield
        return
    active = True

    def over(_number: int, _frame: FrameType | None) -> None:
        if active:
            raise SoftTimeLimit(seconds)

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        active = False
        signal.setitimer(signal.ITIMER_REAL, 0)
