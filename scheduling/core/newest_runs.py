"""Finds the newest occurrences that may run among many that a calendar may exclude."""

from __future__ import annotations

from datetime import datetime

from scheduling.core.assigned import Assigned
from scheduling.core.nominal import TICK
from scheduling.core.stretches import Stretch

MOST_IN_PART = 500
"""A part of the time with more occurrences is halved before they are looked at one by one."""
MOST_STEPS = 1_000
"""So many stretches are looked at. If no more is found, a calendar excludes nearly all of them one by one."""


def newest_runs(own: Assigned, first: datetime, end: datetime, now: datetime, wanted: int) -> datetime:
    """The occurrence in [first, end) from which on so many occurrences may run; `end` if none in sight does.

    A calendar is read forwards. So the newer half of the time is looked at first, and each half only as far as needed.
    An exclusion takes one step, however many occurrences it excludes. What is too old to run is not looked at.

    Args:
        first, end: nominal instants.
        now: what is held beyond it does not run.
    """
    oldest = now - own.timing.longest_wait - own.timing.spread
    # The one before may be held, and so run in time.
    low = own.times.last(first - TICK, oldest) or first
    found, steps, held = end, 0, None
    parts = [(low, end)] if low < end else []
    while parts and wanted > 0 and steps < MOST_STEPS:
        begin, stop = parts.pop()
        if _is_mixed(own, begin, stop) and own.times.count(begin, stop - TICK) >= MOST_IN_PART:
            half = begin + (stop - begin) / 2
            middle = own.times.after(half)
            is_empty = middle is None or middle >= stop
            parts += [(begin, half + TICK)] if is_empty or middle is None else [(begin, middle), (middle, stop)]
            steps += 1
            continue
        for stretch in own.walk(begin):
            if stretch.first >= stop:
                break
            steps += 1
            if _runs(own, stretch, now) and (stretch.why is None or stretch.last != held):
                wanted -= 1
                held = stretch.last
        found = begin
    return found


def _is_mixed(own: Assigned, begin: datetime, stop: datetime) -> bool:
    """Whether the occurrences of a part do not share one exclusion."""
    last = next(own.walk(begin)).last
    following = None if last is None else own.times.after(last)
    return following is not None and following < stop


def _runs(own: Assigned, stretch: Stretch, now: datetime) -> bool:
    """Whether the last of these occurrences may run."""
    if stretch.why is None:
        return True
    at, gives_way = own.release(stretch) if own.holds else (None, False)
    return at is not None and at <= now and not gives_way
