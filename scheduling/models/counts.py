"""Counts that stop at a limit."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.formats import number_format

CAP = 10_000
"""The number at which a count stops. An operator does not need to know exactly how many more rows there are."""


@dataclass(frozen=True)
class Count:
    """A number of rows. If `capped` is true, there are more rows than `number`."""

    number: int
    capped: bool = False

    def __str__(self) -> str:
        return number_format(self.number, force_grouping=True) + ("+" if self.capped else "")

    def __bool__(self) -> bool:
        return self.number > 0


def count(rows: QuerySet, cap: int = CAP) -> Count:
    """Count rows, but stop at `cap`."""
    found = rows.order_by()[: cap + 1].count()
    return Count(min(found, cap), found > cap)
