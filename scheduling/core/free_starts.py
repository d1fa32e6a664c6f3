"""Leaves out of a list of starts what a calendar excludes, and adds what it holds until then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime

from scheduling.core.nominal import TICK, NominalTimes

Stretch = tuple[datetime, datetime | None]
"""The beginning and the end of what a calendar excludes. The end is not excluded; None: it never ends."""


def free_starts(
    starts: Sequence[datetime], stretches: Sequence[Stretch], own: NominalTimes, *, holds: bool, since: datetime
) -> list[datetime]:
    """The starts of a schedule that has a calendar.

    Args:
        starts: its nominal instants from `since` on, ascending.
        stretches: what the calendar excludes, ascending.
        own: its times, for what a stretch that began before `since` holds.
        holds: whether the latest excluded occurrence of each stretch runs when the stretch ends.
    """
    begins = [begin for begin, _end in stretches]
    free = [at for at in starts if (place := bisect_right(begins, at) - 1) < 0 or _is_over(stretches[place], at)]
    if not holds:
        return free
    known = set(free)  # an occurrence at the end of a stretch runs, and what was held gives way to it
    for begin, end in stretches:
        first = own.after(begin - TICK) if end is not None and end >= since and end not in known else None
        if first is not None and end is not None and first < end:
            free.append(end)
    return sorted(free)


def _is_over(stretch: Stretch, at: datetime) -> bool:
    return stretch[1] is not None and stretch[1] <= at
