"""Figures: percentiles, bounded counts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.formats import number_format

CAP = 10_000
"""Nobody reads beyond it: a count stops there, whatever the table's size."""


@dataclass(frozen=True)
class Count:
    """A number, or that there are more."""

    number: int
    capped: bool = False

    def __str__(self) -> str:
        return number_format(self.number, force_grouping=True) + ("+" if self.capped else "")

    def __bool__(self) -> bool:
        return self.number > 0


def count(rows: QuerySet, cap: int = CAP) -> Count:
    """How many rows, counted in an index up to the cap."""
    found = rows.order_by()[: cap + 1].count()
    return Count(min(found, cap), found > cap)


def percentile(values: Iterable[float], share: float) -> float | None:
    """The nearest-rank percentile: a value that did occur. None of nothing."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
