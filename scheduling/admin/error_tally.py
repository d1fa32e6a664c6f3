"""A tally of the newest failures: read once, counted here, whatever else the table holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from django.db.models import QuerySet

NEWEST = 10_000
"""Failures that are counted. They lie scattered over a table of millions, so that each costs a page of it: queries that
count in the database would read those pages once each, and a database with little memory reads them from disk."""

Target = tuple[str, str]
"""Type and name."""


@dataclass
class Cause:
    """What the failures of one fingerprint come to."""

    fingerprint: str
    latest: int
    """The newest one's key."""
    count: int = 0
    first: datetime | None = None
    last: datetime | None = None
    targets: Counter[Target] = field(default_factory=Counter)
    days: Counter[date] = field(default_factory=Counter)
    """Failures by the day of their end, in UTC."""

    def add(self, finished_at: datetime | None, target: Target) -> None:
        """One more."""
        self.count += 1
        self.targets[target] += 1
        if finished_at is not None:
            self.first = finished_at if self.first is None else min(self.first, finished_at)
            self.last = finished_at if self.last is None else max(self.last, finished_at)
            self.days[finished_at.astimezone(UTC).date()] += 1


@dataclass
class Tally:
    """`causes` with the most failures first; `capped`: there are older failures, which are not among them."""

    causes: list[Cause]
    capped: bool


def tally(rows: QuerySet[Any], newest: int = NEWEST) -> Tally:
    """Count failures by their fingerprint.

    Args:
        rows: failed executions, as filters and search leave them.
        newest: how many are looked at.
    """
    columns = ("fingerprint", "pk", "finished_at", "type", "target_name")
    found = list(rows.prefetch_related(None).defer(None).order_by("-pk").values_list(*columns)[: newest + 1])
    causes: dict[str, Cause] = {}
    for fingerprint, pk, finished_at, type_, name in found[:newest]:
        causes.setdefault(fingerprint, Cause(fingerprint, pk)).add(finished_at, (type_, name))
    ordered = sorted(causes.values(), key=lambda each: (-each.count, -each.latest))
    return Tally(ordered, capped=len(found) > newest)
