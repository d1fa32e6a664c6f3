"""Edges: where in the table of executions an hour begins, found by key.

No index knows the time of a claim: it would cost every claim. But keys grow with it, so the keys of
168 hours are found by looking at some thousand rows by primary key, however many rows there are. Two
producers may claim a row of one hour a moment after the next one's: an edge is right but for those.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime

from scheduling.models import SchedulerExecution

PROBES = 800
"""Keys looked at in one query; below the number of parameters that every SQLite takes."""

Bracket = tuple[int, int]
Seen = tuple[list[int], list[datetime]]


def first_keys(instants: Sequence[datetime]) -> list[int]:
    """For each instant the first key from which on rows were claimed at it or later."""
    rows = SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True)
    first, last = rows.first(), rows.last()
    if first is None or last is None:
        return [0] * len(instants)
    brackets: list[Bracket] = [(first, last + 1)] * len(instants)
    while still := sorted({each for each in brackets if each[0] < each[1]}):
        looked = _look(still)
        brackets = [
            _narrow(each, instant, *looked[each]) if each in looked else each
            for each, instant in zip(brackets, instants, strict=True)
        ]
    return [low for low, _high in brackets]


def _look(brackets: list[Bracket]) -> dict[Bracket, tuple[Seen, bool]]:
    """Rows of each bracket, and whether they are all of its rows."""
    share = max(1, PROBES // len(brackets))
    looked: dict[Bracket, tuple[Seen, bool]] = {}
    for some in range(0, len(brackets), PROBES):
        chosen = {each: _spread(each, share) for each in brackets[some : some + PROBES]}
        keys = [key for probes in chosen.values() for key in probes]
        found = dict(SchedulerExecution.objects.filter(pk__in=keys).values_list("pk", "executed_at"))
        for each, probes in chosen.items():
            kept = [key for key in probes if key in found]
            whole = each[1] - each[0] <= share
            if kept or whole:
                looked[each] = (kept, [found[key] for key in kept]), whole
            else:
                looked[each] = _next_rows(each)
    return looked


def _spread(bracket: Bracket, share: int) -> list[int]:
    low, high = bracket
    if high - low <= share:
        return list(range(low, high))
    return [low + (high - low) * step // (share + 1) for step in range(1, share + 1)]


def _next_rows(bracket: Bracket) -> tuple[Seen, bool]:
    """Where retention has left few rows, no probe meets one: there the rows themselves are read."""
    rows = list(
        SchedulerExecution.objects.filter(pk__gte=bracket[0], pk__lt=bracket[1])
        .order_by("pk")
        .values_list("pk", "executed_at")[:PROBES]
    )
    return ([key for key, _at in rows], [at for _key, at in rows]), len(rows) < PROBES


def _narrow(bracket: Bracket, instant: datetime, seen: Seen, whole: bool) -> Bracket:
    (low, high), (keys, times) = bracket, seen
    place = bisect_left(times, instant)
    if place < len(keys):
        high = keys[place]
    if whole:
        return high, high
    return (keys[place - 1] + 1 if place else low), high
