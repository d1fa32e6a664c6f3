"""What a producer does in one turn, for tests that choose its clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime

from scheduling.execution.claim import claim_due
from scheduling.producer.changed_calendars import sweep_calendars
from scheduling.producer.sweeps import plan_stale


def claim(now: datetime) -> None:
    claim_due(now, embedded=True)


def look(pick: random.Random, now: datetime) -> str:
    """One turn of a producer, as its loop makes it, or a part of it. Returns what it did."""
    parts: list[Callable[[datetime], object]] = [plan_stale, sweep_calendars, claim]
    chosen = pick.sample(parts, pick.randrange(1, 4)) if pick.random() < 0.6 else parts
    for part in chosen:
        part(now)
    return ", ".join(part.__name__ for part in chosen)


def finish(now: datetime) -> None:
    """One whole turn."""
    plan_stale(now)
    sweep_calendars(now)
    claim(now)
