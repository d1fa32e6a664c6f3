"""Reads the rows of a table in windows: ranges of keys, the smallest first. No window skips rows that it has read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import QuerySet

from scheduling.core.retention import Facts
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.processes.database import is_away

log = get_logger(__name__)

_COLUMNS = ("pk", "scheduler_id", "type", "target_id", "state", "finished_at", "executed_at", "scheduled_at")


class Row(NamedTuple):
    """What retention reads of an execution."""

    pk: int
    scheduler_id: int | None
    target: tuple[str, int | None]
    facts: Facts


class Window(NamedTuple):
    """A range of keys.

    Args:
        keys: all keys of the range, in order.
        rows: the executions that can be read. A row with an unusable value is left out.
    """

    keys: Sequence[int]
    rows: Sequence[Row]


def window_of(rows: QuerySet[SchedulerExecution], size: int, order: Sequence[str] = ("pk",)) -> Window:
    """The first executions of a queryset, by key.

    Args:
        size: the maximum number of executions.
        order: the columns that sort the executions by key.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    ordered = rows.order_by(*order)
    found, error = _read(ordered[:size])
    if error is None:
        return Window([row.pk for row in found], found)
    keys = list(ordered.values_list("pk", flat=True)[:size])
    return Window(keys, _readable(keys, error))


def executions(keys: Sequence[int]) -> list[Row]:
    """The executions with these keys, in order. A row that cannot be read is left out.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    found, error = _read(SchedulerExecution.objects.filter(pk__in=keys).order_by("pk"))
    return found if error is None else _readable(keys, error)


def _readable(keys: Sequence[int], error: Exception) -> list[Row]:
    """The rows that Python can read. Halves of the keys are read, so that one bad row costs only a few queries."""
    if len(keys) <= 1:
        for pk in keys:
            log.warning("Retention keeps execution %s, because it cannot be read: %s", pk, error)
        return []
    middle = len(keys) // 2
    return [*executions(keys[:middle]), *executions(keys[middle:])]


def _read(rows: QuerySet[SchedulerExecution]) -> tuple[list[Row], Exception | None]:
    try:
        with savepoint():
            return list(_rows(rows.values_list(*_COLUMNS))), None
    except Exception as error:
        if is_away(error):
            raise
        return [], error


def _rows(values: Iterable[tuple[Any, ...]]) -> Iterable[Row]:
    for pk, scheduler_id, type_, target_id, *facts in values:
        yield Row(pk, scheduler_id, (type_, target_id), Facts(*facts))


def savepoint() -> AbstractContextManager[Any]:
    """A savepoint inside a transaction, where a failed statement would make PostgreSQL refuse the next one."""
    return transaction.atomic() if connection.in_atomic_block else nullcontext()
