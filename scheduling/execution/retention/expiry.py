"""Takes failures out of the failed inbox, if they are older than the age of failures.

A failure is first marked: its row becomes discarded, by a compare-and-set. Its message is removed second, and the row
third. So a message in the failed queue always has a row until it is removed. If the process is killed after the first
step, the next sync removes the message, because its row is no longer failed. In any case the next pass finds the marked
row again. If the row were removed first, a sync would make a new row for its message. If the message were removed first
and its acknowledgement were lost, the same would happen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import QuerySet

from scheduling.core.inbox_sentences import TOO_OLD
from scheduling.core.lifecycle import State
from scheduling.models import Replay, SchedulerExecution
from scheduling.models.replay import OPEN

EXPIRED = TOO_OLD.format()
"""The reason of a marked row. Operators' reasons begin with other words."""


def failures() -> QuerySet[SchedulerExecution]:
    """The rows of the failed inbox. The index (state, -id) has them in order."""
    return SchedulerExecution.objects.filter(state=State.FAILED.value)


def marked() -> QuerySet[SchedulerExecution]:
    """The rows that `mark` has taken out of the inbox, and that have not been removed yet."""
    return SchedulerExecution.objects.filter(state=State.DISCARDED.value, reason=EXPIRED)


def mark(ages: Iterable[tuple[int, int]], now: datetime) -> int:
    """Mark failures: they leave the inbox. Returns how many.

    A failure that an operator has republished meanwhile is not marked, even if it has failed again.

    Args:
        ages: pairs of an execution's id and the age of its failures in days.
    """
    by_days: dict[int, list[int]] = defaultdict(list)
    for pk, days in ages:
        by_days[days].append(pk)
    return sum(
        SchedulerExecution.objects.filter(pk__in=ids, finished_at__lt=now - timedelta(days=days)).move(
            [State.FAILED], State.DISCARDED, reason=EXPIRED
        )
        for days, ids in by_days.items()
    )


def replay_is_open() -> bool:
    """Whether an operator is republishing failures. Failures that wait in a replay must not leave the inbox."""
    return Replay.objects.filter(state__in=OPEN).exists()
