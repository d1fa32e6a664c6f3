"""By how much the start of an occurrence is moved, so that many schedules with the same times do not start at once.

The offset is computed from the number of the schedule with SHA-256. So it is the same on every machine, with every
version of Python, after every restart. It is a whole number of seconds, at least 0 and less than the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256

LONGEST = timedelta(days=1)

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SpreadOffset:
    """The offsets of one schedule.

    Args:
        schedule: the number of the schedule; None if it has none yet. Then each offset is 0.
        window: the length of time over which starts are spread.
        each: whether each instant has an offset of its own. Then an occurrence always starts before the next one is
            due, so that no two of a schedule change places or start together. Otherwise all have the same offset.
    """

    schedule: int | None
    window: timedelta
    each: bool = False

    @property
    def stable(self) -> timedelta:
        """The offset that all occurrences have, if not each has its own."""
        return _part(f"spread:{self.schedule}", self.window) if self.schedule is not None else timedelta(0)

    def at(self, nominal: datetime, room: timedelta | None) -> timedelta:
        """The offset of one occurrence.

        Args:
            nominal: its nominal instant, aware.
            room: how long after the instant from which the offset counts the next occurrence is due; None if none is.
        """
        if not self.each:
            return self.stable
        if self.schedule is None:
            return timedelta(0)
        window = self.window if room is None else min(self.window, room)
        return _part(f"spread:{self.schedule}:{int(nominal.timestamp())}", window)


@lru_cache(maxsize=1024)  # a plan asks several times
def _part(text: str, window: timedelta) -> timedelta:
    """A part of the window, in whole seconds, chosen by the hash of the text."""
    seconds = window // _SECOND
    return _SECOND * (int.from_bytes(sha256(text.encode()).digest()[:8], "big") * seconds >> 64)
