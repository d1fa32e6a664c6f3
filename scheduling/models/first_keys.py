"""Finds the first execution that was claimed at or after an instant, for many instants at once.

The column `executed_at` holds the time of the claim. The column has no index, because an index would slow down every
claim. But a later claim gets a larger primary key, so the module searches by primary key. Each step reads a few rows of
a range of keys, compares the claim times of these rows with the instant, and makes the range smaller. For the 168
hours of a week, the search reads a few thousand rows in a table of any size.

The result can be wrong by a few rows, because two producers may claim at the same time. An execution that is claimed at
the end of an hour may then have a larger primary key than the first execution of the next hour.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime

from scheduling.models import SchedulerExecution

KEYS_PER_QUERY = 800
"""The maximum number of keys in one query. Older versions of SQLite accept at most 999 parameters."""

Bracket = tuple[int, int]
"""A range of primary keys: its first key, and the number after its last key. An empty range has the same key twice."""

Seen = tuple[list[int], list[datetime]]
"""The primary keys of some rows, in ascending order, and the times when these rows were claimed."""


def first_keys(instants: Sequence[datetime], keys_per_query: int = KEYS_PER_QUERY) -> list[int]:
    """For each instant, the primary key of the first row that was claimed at or after the instant."""
    rows = SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True)
    first, last = rows.first(), rows.last()
    if first is None or last is None:
        return [0] * len(instants)
    brackets: list[Bracket] = [(first, last + 1)] * len(instants)
    while still := sorted({bracket for bracket in brackets if bracket[0] < bracket[1]}):
        looked = _look(still, keys_per_query)
        brackets = [
            _narrow(bracket, instant, *looked[bracket]) if bracket in looked else bracket
            for bracket, instant in zip(brackets, instants, strict=True)
        ]
    return [low for low, _high in brackets]


def oldest_of_newest(count: int) -> int | None:
    """The first key among the newest `count` keys of the table of executions. None if the table has no older row."""
    keys = SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True)
    first, last = keys.first(), keys.last()
    if first is None or last is None or first > last - count:
        return None
    return last - count + 1


def _look(brackets: list[Bracket], keys_per_query: int) -> dict[Bracket, tuple[Seen, bool]]:
    """Read some rows of each range of keys. For each range, the bool says whether all its rows were read."""
    share = max(1, keys_per_query // len(brackets))
    looked: dict[Bracket, tuple[Seen, bool]] = {}
    for some in range(0, len(brackets), keys_per_query):
        chosen = {bracket: _spread(bracket, share) for bracket in brackets[some : some + keys_per_query]}
        keys = [key for probes in chosen.values() for key in probes]
        found = dict(SchedulerExecution.objects.filter(pk__in=keys).values_list("pk", "executed_at"))
        for bracket, probes in chosen.items():
            kept = [key for key in probes if key in found]
            whole = bracket[1] - bracket[0] <= share
            if kept or whole:
                looked[bracket] = (kept, [found[key] for key in kept]), whole
            else:
                looked[bracket] = _next_rows(bracket, keys_per_query)
    return looked


def _spread(bracket: Bracket, share: int) -> list[int]:
    low, high = bracket
    if high - low <= share:
        return list(range(low, high))
    return [low + (high - low) * step // (share + 1) for step in range(1, share + 1)]


def _next_rows(bracket: Bracket, limit: int) -> tuple[Seen, bool]:
    """Read the first rows of a range of keys. The bool says whether all rows of the range were read.

    `_look` calls this function if retention has removed the rows of all keys that `_look` tried.
    """
    rows = SchedulerExecution.objects.filter(pk__gte=bracket[0], pk__lt=bracket[1]).order_by("pk")
    found = list(rows.values_list("pk", "executed_at")[:limit])
    return ([key for key, _at in found], [at for _key, at in found]), len(found) < limit


def _narrow(bracket: Bracket, instant: datetime, seen: Seen, whole: bool) -> Bracket:
    (low, high), (keys, times) = bracket, seen
    place = bisect_left(times, instant)
    if place < len(keys):
        high = keys[place]
    if whole:
        return high, high
    return (keys[place - 1] + 1 if place else low), high
