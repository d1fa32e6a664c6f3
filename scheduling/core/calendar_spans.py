"""Spans of minutes: which entry of a calendar excludes which minutes, without overlaps."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Sequence

Span = tuple[int, int, int]
"""First minute, first minute after it, and the number of the entry."""

_BEYOND = 1 << 62


def flatten(spans: Iterable[Span]) -> list[Span]:
    """The same minutes in ascending spans that do not overlap. Of several entries, the one with the lowest number
    counts. Spans of one entry that touch each other are joined."""
    waiting = sorted(spans)
    found: list[Span] = []
    active: list[tuple[int, int]] = []
    here, place = 0, 0
    while active or place < len(waiting):
        if not active:
            here = waiting[place][0]
        while place < len(waiting) and waiting[place][0] <= here:
            _start, end, number = waiting[place]
            heapq.heappush(active, (number, end))
            place += 1
        while active and active[0][1] <= here:
            heapq.heappop(active)
        if not active:
            continue
        number, end = active[0]
        there = min(end, waiting[place][0]) if place < len(waiting) else end
        if found and found[-1][1:] == (here, number):
            found[-1] = (found[-1][0], there, number)
        else:
            found.append((here, there, number))
        here = there
    return found


def span_at(spans: Sequence[Span], minute: int) -> Span | None:
    """The span of flat spans that contains a minute; None if no span does."""
    place = bisect_right(spans, (minute, _BEYOND, _BEYOND)) - 1
    return spans[place] if place >= 0 and minute < spans[place][1] else None


def span_from(spans: Sequence[Span], minute: int) -> Span | None:
    """The first of flat spans that ends after a minute; None if none does."""
    place = max(bisect_right(spans, (minute, _BEYOND, _BEYOND)) - 1, 0)
    return next((spans[at] for at in range(place, len(spans)) if spans[at][1] > minute), None)


def overlapping(spans: Sequence[Span], first: int, end: int) -> list[Span]:
    """The parts of flat spans that lie in [first, end)."""
    place = max(bisect_right(spans, (first, _BEYOND, _BEYOND)) - 1, 0)
    found = []
    for at in range(place, len(spans)):  # a slice would copy all that follow
        start, stop, number = spans[at]
        if start >= end:
            break
        if stop > first:
            found.append((max(start, first), min(stop, end), number))
    return found


def joined(spans: Iterable[Span]) -> list[Span]:
    """The minutes of flat spans, whatever their entries are: spans that touch each other are one, with the number 0."""
    found: list[Span] = []
    for first, end, _number in spans:
        if found and found[-1][1] == first:
            found[-1] = (found[-1][0], end, 0)
        else:
            found.append((first, end, 0))
    return found
