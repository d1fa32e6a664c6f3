"""Spread: when each of many republished failures may start, so that they do not start all at once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Spread:
    """A span of time that many starts share evenly.

    Args:
        start: when the first of them may start.
        span: how long after `start` the spread ends.
        total: how many starts share the span, 1 or more. It stays the same in each pass.
    """

    start: datetime
    span: timedelta
    total: int

    @classmethod
    def going_on(cls, began: datetime, span: timedelta, total: int, left: int, now: datetime) -> Spread:
        """The spread of a pass.

        A first pass begins now, because its failures may have been counted long before. A further pass goes on with the
        spread that began then. If that spread would be over, a new one begins now, at the same place.

        Args:
            began: when the failures were counted. An instant in the future counts as now.
            total: how many were counted.
            left: how many of them no earlier pass has done.
        """
        began, total = min(began, now), max(total, left, 1)
        return cls(now if left >= total or now - began >= span else began, span, total)

    def at(self, place: int, now: datetime) -> datetime:
        """When the start with this place, from 0 on, may happen. It is never before now."""
        return max(now, self.start + self.span * (place / self.total))

    @property
    def step(self) -> timedelta:
        """The time between two starts."""
        return self.span / self.total
