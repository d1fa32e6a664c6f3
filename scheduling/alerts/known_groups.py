"""Records which error groups are in the inbox, so that one that comes back is recognised."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from scheduling.alerts.repeated import RepeatedQuery, as_they_are
from scheduling.core.chunks import chunks
from scheduling.models import KnownErrorGroup

MOST_PRESENT = 5_000


_present = RepeatedQuery(
    lambda _now: KnownErrorGroup.objects.filter(left_at=None).order_by("-pk"),
    ("pk", "key", "is_back"),
    MOST_PRESENT,
    as_they_are,
)


def note_groups(present: Collection[str], now: datetime, *, complete: bool) -> set[str]:
    """Record the error groups that are in the inbox. Returns those of them that had left it before.

    In the steady state, this is one query and no change.

    Args:
        present: the keys of the error groups with failures in the inbox.
        complete: whether all failures of the inbox were looked at. If not, no group counts as gone until
            `cleanup_executions` looks at all of them (`execution.retention`).
    """
    rows = KnownErrorGroup.objects.all()
    noted = {key: is_back for _pk, key, is_back in _present.rows()}
    gone = [key for key in noted if key not in present] if complete else []
    missing = [key for key in present if key not in noted]
    returned: set[str] = set()
    for some in chunks(missing):
        known = rows.filter(key__in=some)
        returned |= set(known.exclude(left_at=None).values_list("key", flat=True))
        # These never left. They are older than the rows that were read first.
        noted |= dict(known.filter(left_at=None).values_list("key", "is_back"))
    new = [KnownErrorGroup(key=key) for key in missing if key not in returned and key not in noted]
    if gone or returned or new:
        with transaction.atomic():
            for some in chunks(gone):
                rows.filter(key__in=some).update(left_at=now, is_back=False)
            for some in chunks(sorted(returned)):
                rows.filter(key__in=some).update(left_at=None, is_back=True)
            rows.bulk_create(new, ignore_conflicts=True)
    return returned | {key for key, is_back in noted.items() if is_back is True and key in present}
