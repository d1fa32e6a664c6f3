"""The causes of the failures in the inbox: failures with the same fingerprint have the same cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

COLUMNS = ("fingerprint", "pk", "finished_at", "type", "target_name", "scheduler_id")
"""The columns of a failure that `causes_of` counts."""

Failure = tuple[str, int, datetime | None, str, str, int | None]


@dataclass
class Cause:
    """The failures with one fingerprint: how many failures each target has, and when the executions ended."""

    fingerprint: str
    latest: int
    """The primary key of the newest failure."""
    targets: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Maps the type and the name of a target to the number of its failures."""
    schedulers: set[int] = field(default_factory=set)
    ends: list[datetime] = field(default_factory=list)
    first: int | None = None
    """The primary key of the failure that ended first; None if no failure has an end."""
    first_end: datetime | None = None

    @property
    def count(self) -> int:
        """The number of failures."""
        return self.targets.total()


def causes_of(failures: Iterable[Failure]) -> list[Cause]:
    """The causes, the most frequent first. Of two equally frequent causes, the one with the newest failure is first.

    Args:
        failures: values of COLUMNS, the newest failure first.
    """
    causes: dict[str, Cause] = {}
    for fingerprint, pk, finished_at, type_, name, scheduler in failures:
        cause = causes.setdefault(fingerprint, Cause(fingerprint, pk))
        cause.targets[type_, name] += 1
        if scheduler is not None:
            cause.schedulers.add(scheduler)
        if finished_at is not None:
            cause.ends.append(finished_at)
            if cause.first_end is None or finished_at <= cause.first_end:
                cause.first, cause.first_end = pk, finished_at
    return sorted(causes.values(), key=lambda cause: (-cause.count, -cause.latest))
