"""Reads the counters from the totals of the tallies."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from scheduling.core.tallies import BOUNDS, OUTCOME_CHARS, TARGET_CHARS, TYPE_CHARS, label, number
from scheduling.models import TallyTotal

LAST_BUCKET = len(BOUNDS)


@dataclass
class TargetTotals:
    """The totals of one target.

    Args:
        outcomes: how many attempts had each outcome.
        buckets: how many attempts had a duration within each bucket; one more than `BOUNDS`.
    """

    type: str
    target: str
    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    milliseconds: int = 0
    retries: int = 0
    unheard: int = 0

    @property
    def cumulative(self) -> list[tuple[str, float]]:
        """The buckets of a histogram: the upper bound in seconds, and how many attempts took at most so long."""
        found, total = [], 0
        for bound, count in zip((*map(str, map(float, BOUNDS)), "+Inf"), self.buckets, strict=True):
            total += count
            found.append((bound, float(total)))
        return found


def target_totals() -> list[TargetTotals]:
    """The totals of each target. The number of rows is bounded by `core.tallies.MOST_TARGETS`.

    The rows are added up here: for 9,000 rows, sums by target and outcome, and by target and bucket, cost MariaDB more
    than six times as much as the rows.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    by_name: dict[tuple[str, str], TargetTotals] = {}
    by_labels: dict[tuple[str, str], TargetTotals] = {}
    outcomes: dict[object, str] = {}
    columns = ("type", "target", "outcome", "bucket", "attempts", "milliseconds", "retries", "unheard")
    rows = TallyTotal.objects.order_by().values_list(*columns)
    # This loop has thousands of turns in each scrape, so it calls as little as possible.
    for type_, target, outcome, bucket, attempts, milliseconds, retries, unheard in rows:
        totals = by_name.get((type_, target))
        if totals is None:
            # Different names may have the same labels, because plain SQL can write any name.
            labels = label(type_, TYPE_CHARS), label(target, TARGET_CHARS)
            totals = by_name[type_, target] = by_labels.setdefault(labels, TargetTotals(*labels))
        shown = outcomes.get(outcome)
        if shown is None:
            shown = outcomes[outcome] = label(outcome, OUTCOME_CHARS)
        ended = number(attempts) or 0
        totals.outcomes[shown] += ended
        totals.buckets[min(number(bucket) or 0, LAST_BUCKET)] += ended
        totals.milliseconds += number(milliseconds) or 0
        if retries:
            totals.retries += number(retries) or 0
        if unheard:
            totals.unheard += number(unheard) or 0
    return list(by_labels.values())
