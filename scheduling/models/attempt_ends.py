"""Reads when the last attempts of executions ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import F

from scheduling.core.durations import ENDED_LATER
from scheduling.models.attempt import Attempt

KEYS_PER_QUERY = 800
"""Older versions of SQLite accept at most 999 parameters."""


def attempt_ends(executions: Iterable[tuple[int, str]]) -> dict[int, datetime]:
    """The end of the last attempt of each execution, by the primary key of the execution.

    Only executions whose `finished_at` may be later are looked up. The index (execution, number) finds their attempts.

    Args:
        executions: the primary key and the state of each execution.
    """
    keys = [pk for pk, state in executions if state in ENDED_LATER]
    found: dict[int, datetime] = {}
    for start in range(0, len(keys), KEYS_PER_QUERY):
        rows = Attempt.objects.filter(execution__in=keys[start : start + KEYS_PER_QUERY])
        last = rows.filter(number=F("execution__attempt")).order_by()
        found |= dict(last.values_list("execution_id", "finished_at"))
    return found
