"""Counts skipped occurrences into the tallies, each once.

The transaction that records them writes an `UncountedSkip`, and the transaction that counts them removes it. The row of
the mark is the lock, as for attempts (`execution.tallying`). Runs that are not skipped cost nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from scheduling.core.tallies import Amount, Left, Series, counted_skip
from scheduling.execution.tallying import add_to_hours, locked_mark
from scheduling.logs import get_logger
from scheduling.models import TallyMark, UncountedSkip
from scheduling.models.prepared import any_of
from scheduling.models.tally_mark import ONLY
from scheduling.processes.unusable_values import read_each

log = get_logger(__name__)

SKIPS_PER_PASS = 500

ANY = any_of(lambda _now: UncountedSkip.objects.order_by("pk"))
"""Whether any skipped occurrence waits. Each sweep asks for it."""

_COLUMNS = ["pk", "at", "number", "reason", "type", "target", "queue", "schedule", "group"]


def tally_skips(now: datetime, limit: int = SKIPS_PER_PASS) -> int:
    """Count skipped occurrences that wait for it. Returns how many rows were counted.

    If another process counts at this moment, nothing is done.

    Args:
        now: the time of the database.
        limit: how many rows are counted.
    """
    if not ANY.rows(now):
        return 0
    TallyMark.objects.get_or_create(pk=ONLY)
    with transaction.atomic():
        if locked_mark(skip_locked=True) is None:
            return 0
        keys = list(UncountedSkip.objects.order_by("pk").values_list("pk", flat=True)[:limit])
        hours: dict[Series, Amount] = defaultdict(Amount)
        for left in _left(keys):
            series, amount = counted_skip(left, now)
            hours[series] += amount
        add_to_hours(hours)
        rows = UncountedSkip.objects.filter(pk__in=keys)
        rows._raw_delete(rows.db)
    return len(keys)


def _left(keys: Sequence[int]) -> list[Left]:
    """The rows. One that cannot be read is one occurrence of an unreadable target."""
    rows, unreadable = read_each(UncountedSkip.objects.all(), keys, _COLUMNS)
    for pk, error in unreadable.items():
        log.error("A skipped occurrence is tallied without its target, because its row cannot be read: %s", error)
        rows.append((pk,))
    return [Left(*row) for row in rows]
