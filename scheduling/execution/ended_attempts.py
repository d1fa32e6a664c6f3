"""Reads ended attempts for the tallies. An attempt whose row cannot be read is counted, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Q

from scheduling.core.events import WORKER
from scheduling.core.tallies import Ended
from scheduling.logs import get_logger
from scheduling.models import Attempt
from scheduling.processes.unusable_values import read, read_each

log = get_logger(__name__)

_COLUMNS = [
    "pk", "execution__type", "execution__target_name", "outcome", "execution__queue", "execution__scheduler_id",
    "execution__group_id", "started_at", "finished_at", "number", "execution_id", "error_class", "is_last",
]  # fmt: skip
_WITHOUT_INSTANTS = [name for name in _COLUMNS if not name.endswith("_at")]


def ended_attempts(keys: Sequence[int]) -> list[Ended]:
    """The attempts with these primary keys. Must be called in a transaction.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    found: list[Ended] = []
    numbers: dict[int, tuple[Any, Any]] = {}
    for row in _rows(keys):
        pk, type_, target, outcome, queue, schedule, group, started, finished, number, execution, error, is_last = row
        found.append(
            Ended(
                pk, type_, target, outcome, queue, schedule, group, started, finished, error_class=error,
                is_last=bool(is_last),
            )
        )  # fmt: skip
        numbers[pk] = (execution, number)
    known = {ended.pk for ended in found}
    found += [Ended(pk) for pk in keys if pk not in known]
    retries, results = _retries(numbers), _results(found)
    return [replace(ended, is_retry=ended.pk in retries, result=results.get(ended.pk, "")) for ended in found]


def _rows(keys: Sequence[int]) -> list[tuple[Any, ...]]:
    """The columns of the attempts. The instants of a row that cannot be read are left out."""
    attempts = Attempt.objects.annotate(is_last=Q(retry_at__isnull=True))
    rows, unreadable = read_each(attempts, keys, _COLUMNS)
    for pk, error in unreadable.items():
        log.debug("Attempt %s is tallied without its duration: %s", pk, error)
        found, _error = read(attempts.filter(pk=pk), _WITHOUT_INSTANTS)
        rows += [(*row[:7], None, None, *row[7:]) for row in found]
    return rows


def _retries(numbers: dict[int, tuple[Any, Any]]) -> set[int]:
    """Which of the attempts were retries: the attempt before it says that a retry follows."""
    later = {
        pk: (execution, number - 1)
        for pk, (execution, number) in numbers.items()
        if type(number) is int and number > 1 and type(execution) is int
    }
    if not later:
        return set()
    executions = {execution for execution, _number in later.values()}
    rows = Attempt.objects.filter(execution__in=executions, retry_at__isnull=False).order_by()
    followed, _unreadable = read(rows, ["execution_id", "number"])
    before = set(followed)
    return {pk for pk, key in later.items() if key in before}


def _results(found: list[Ended]) -> dict[int, Any]:
    """The results of the events that have succeeded. Other results are not read, because they may be long."""
    events = [ended.pk for ended in found if ended.target == WORKER and ended.outcome == Attempt.Outcome.SUCCEEDED]
    return dict(read(Attempt.objects.filter(pk__in=events).order_by(), ["pk", "result"])[0]) if events else {}
