"""Occurrences that share a reason, and the row that records them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduling.core import skip_reasons
from scheduling.core.assigned import Assigned
from scheduling.core.occurrences import Missed
from scheduling.core.zones import zone

MOST_REASONS = 20
"""At most so many rows say what calendars have excluded. The last of them counts the rest."""


@dataclass
class Counted:
    """Occurrences that share a reason."""

    first: datetime
    last: datetime
    count: int


def counted_until(own: Assigned, first: datetime, until: datetime) -> Counted:
    """The occurrences from `first` on that are not later than `until`."""
    return Counted(first, own.times.last(first, until) or first, 1 + own.times.count(first, until))


def joined(parts: list[Counted]) -> Counted | None:
    """All of them together; None if there is none."""
    if not parts:
        return None
    first, last = min(part.first for part in parts), max(part.last for part in parts)
    return Counted(first, last, sum(part.count for part in parts))


def add_to(groups: dict[str, Counted], why: str, counted: Counted) -> None:
    """Count further occurrences with a reason."""
    if why not in groups and len(groups) >= MOST_REASONS:
        why = next(reversed(groups))
    known = groups.get(why)
    groups[why] = counted if known is None else joined([known, counted]) or counted


def add_all(groups: dict[str, Counted], found: list[tuple[str, Counted]]) -> None:
    """Count all of them."""
    for why, counted in found:
        add_to(groups, why, counted)


def excluded_rows(own: Assigned, excluded: dict[str, Counted]) -> list[Missed]:
    """The rows of what a calendar excludes, one for each reason."""
    info = zone(own.times.tz)
    return [
        _row(own, counted, skip_reasons.excluded(counted.first, counted.last, counted.count, why, info))
        for why, counted in excluded.items()
    ]


def held_row(own: Assigned, counted: Counted, why: str, instead: str) -> Missed:
    """The row of what a calendar has held, and what does not run. `instead` is as in `skip_reasons.held`."""
    info = zone(own.times.tz)
    return _row(own, counted, skip_reasons.held(counted.first, counted.last, counted.count, why, info, instead))


def missed_row(own: Assigned, counted: Counted, why: str) -> Missed:
    """The row of what does not run. `why` is as in `skip_reasons.missed`."""
    info = zone(own.times.tz)
    return _row(own, counted, skip_reasons.missed(counted.first, counted.last, counted.count, why, info))


def _row(own: Assigned, counted: Counted, reason: str) -> Missed:
    return Missed(counted.first, counted.last, counted.count, own.times.key(counted.first), reason)
