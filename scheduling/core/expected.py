"""Tells what a schedule with rules of its own will do at its next nominal instants."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, auto
from itertools import islice, pairwise

from scheduling.core.assigned import Assigned
from scheduling.core.nominal import TICK

MOST_LOOKED_AT = 500
MOST_NOT_RUN = 50
"""At most so many stretches of occurrences that do not run are told between the runs."""


class Fate(StrEnum):
    """What becomes of occurrences. Clients compare the values, so they never change."""

    RUNS = auto()
    EXCLUDED = auto()
    """A calendar excludes them, so they do not run."""
    HELD = auto()
    """A calendar holds them. The last of them runs when the hold is over."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Occurrences to come that follow each other and share their fate.

    Args:
        first, last: their nominal instants. `last` is None if they go on for ever.
        count: how many they are; 0 if they go on for ever.
        starts_at: when the last of them starts; None if none of them starts.
        why: what the calendar says; empty if it says nothing.
        gives_way_at: when another occurrence starts, which is due at the very end of their hold; None if none is.
    """

    first: datetime
    last: datetime | None
    count: int
    fate: Fate
    starts_at: datetime | None
    why: str = ""
    gives_way_at: datetime | None = None


def expected(own: Assigned, first: datetime | None) -> Iterator[Expected]:
    """What becomes of the occurrences from the nominal instant `first` on. A caller takes as many as it needs."""
    not_run = 0
    for stretch in own.walk(first) if first is not None else ():
        if stretch.why is None:
            not_run = 0
            yield Expected(stretch.first, stretch.last, 1, Fate.RUNS, own.at(stretch.first))
            continue
        fate, at, gives_way = Fate.EXCLUDED, None, False
        if own.holds:
            fate, (at, gives_way) = Fate.HELD, own.release(stretch)
        not_run = 0 if at is not None and not gives_way else not_run + 1
        if not_run > MOST_NOT_RUN:
            return
        yield Expected(
            stretch.first, stretch.last, stretch.count, fate, None if gives_way else at, stretch.why,
            at if gives_way else None,
        )  # fmt: skip


def first_expected(own: Assigned, planned: datetime | None, now: datetime) -> datetime | None:
    """The nominal instant from which on occurrences are to come: one that has passed may still wait for its start.

    Args:
        planned: the first nominal instant that is not on record; None if it is not known.
    """
    return planned if planned is not None and planned <= now else own.times.after(now)


def last_to_run(own: Assigned, after: datetime, until: datetime) -> datetime | None:
    """The nominal instant of the last occurrence in (after, until] that runs, and starts by `until` if it is held.

    None if there is none among the newest `MOST_LOOKED_AT`.
    """
    start = own.times.newest(MOST_LOOKED_AT, after, until)
    first = own.times.after(start) if start is not None else None
    found: datetime | None = None
    for stretch in own.walk(first) if first is not None else ():
        if stretch.first > until:
            break
        if stretch.why is None:
            found = stretch.first
        elif own.holds and stretch.last is not None:
            at, gives_way = own.release(stretch)
            found = stretch.last if at is not None and at <= until and not gives_way else found
    return found


def next_start(own: Assigned, after: datetime) -> datetime | None:
    """When the first occurrence starts that starts later than this instant. None if none is in sight."""
    # The last occurrence whose nominal instant has come may still wait for its start.
    first = own.times.last(after - own.timing.spread, after) or own.times.after(after)
    if own.timing.spread and not own.timing.each:
        first = own.times.after(after - own.offset.stable)
    starts = (one.starts_at for one in expected(own, first) if one.starts_at is not None)
    return next((start for start in starts if start > after), None)


def starts_per_hour(own: Assigned, edges: Sequence[datetime]) -> list[int]:
    """How many occurrences start in each [edge, next edge).

    Without a calendar they are counted, and only the order of magnitude counts: if each has an offset of its own, they
    are counted at their nominal instants. With a calendar, at most `MOST_LOOKED_AT` stretches are looked at.
    """
    if own.timing.excluded is None:
        offset = timedelta(0) if own.timing.each or not own.timing.spread else own.offset.stable
        shifted = [edge - offset - TICK for edge in edges]
        return [own.times.count(start, end) for start, end in pairwise(shifted)]
    counts = [0] * (len(edges) - 1)
    first = own.times.after(edges[0] - own.timing.spread - TICK)
    for one in islice(expected(own, first), MOST_LOOKED_AT):
        if one.first >= edges[-1]:
            break
        if one.starts_at is not None and edges[0] <= one.starts_at < edges[-1]:
            counts[bisect_right(edges, one.starts_at) - 1] += 1
    return counts


def nominal_of_start(own: Assigned, minute: datetime) -> datetime | None:
    """The nominal instant of the occurrence that starts within this minute because it is spread; None if none does."""
    if not own.timing.spread:
        return None
    offset = timedelta(0) if own.timing.each else own.offset.stable
    end = minute + timedelta(minutes=1) - TICK
    found = own.times.last(end - own.timing.spread - timedelta(minutes=1), end - offset)
    if found is not None and own.at(found) > end:
        found = own.times.last(end - own.timing.spread, found - TICK)
    return found if found is not None and found != minute and minute <= own.at(found) <= end else None


def fate_of(own: Assigned, nominal: datetime) -> Expected | None:
    """What becomes of the occurrence at a nominal instant; None if the schedule has none then."""
    if own.times.after(nominal - TICK) != nominal:
        return None
    return next(expected(own, nominal))
