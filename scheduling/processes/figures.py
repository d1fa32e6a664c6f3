"""Figures: what this process has done since its start. They are counted in memory, without any query."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Figures:
    """The figures of one process.

    Args:
        turns: turns of the main loop.
        claims: claimed occurrences.
        publishes: messages that were sent to the broker.
        confirms: messages that the broker has confirmed.
        starts: started runs.
        slots: how many runs the consumer can run at once; 0 for a producer.
        busy: how many runs it runs.
        held: whether the process claims and starts nothing.
        started_at: seconds since 1970.
    """

    turns: int = 0
    claims: int = 0
    publishes: int = 0
    confirms: int = 0
    starts: int = 0
    slots: int = 0
    busy: int = 0
    held: bool = False
    started_at: float = field(default_factory=time.time)


figures = Figures()
"""The figures of this process."""
