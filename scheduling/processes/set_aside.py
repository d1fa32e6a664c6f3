"""Sets aside executions that cannot be processed: their rows become failed, and all other executions continue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import QuerySet

from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.run_sentences import UNUSABLE_ROW
from scheduling.core.text import clean
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.processes import left_out
from scheduling.processes.database import is_away
from scheduling.processes.failure_report import Failure, failure_of, report
from scheduling.processes.unusable_values import at_column

log = get_logger(__name__)

ERROR_CLASS = "UnusableRow"
SET_ASIDE = UNUSABLE_ROW.format()

Row = TypeVar("Row")


def fail_row(pk: int, error: Exception, now: datetime) -> None:
    """Set a waiting or running row to failed, without reading its other columns.

    Plain SQL may have written the row. So its other columns may be unreadable, or may name rows that do not exist. If
    the database refuses this change, too, the row is left out for a minute.
    """
    said = clean(at_column(SchedulerExecution, pk, error), 1_000)
    rows = SchedulerExecution.objects.filter(pk=pk)
    try:
        with transaction.atomic():
            moved = rows.move(
                OPEN_STATES, State.FAILED, wake_at=None, finished_at=now, published_at=now,
                error_class=ERROR_CLASS, error_message=said, fingerprint=fingerprint(ERROR_CLASS, said),
                reason=SET_ASIDE,
            )  # fmt: skip
    except Exception as refused:
        if is_away(refused):
            raise
        left_out.executions.add(pk, refused, now)
        return
    if moved:
        log.error("An execution cannot be processed and is set aside: %s", said, extra={"execution": pk})
        report(_failure(pk, said, now))


def _failure(pk: int, said: str, now: datetime) -> Failure:
    """The failure of a row that was set aside. If the row cannot be read, only its id and its error are known."""
    try:
        with transaction.atomic():
            return failure_of(SchedulerExecution.objects.get(pk=pk))
    except Exception:
        return Failure(pk, None, "", None, "", 0, 0, ERROR_CLASS, said, SET_ASIDE, now)


def read_rows(rows: QuerySet, now: datetime) -> list[SchedulerExecution]:
    """The rows of a queryset. If the query fails, the rows are read one by one, and unreadable rows are set aside.

    Raises:
        django.db.DatabaseError: the database cannot be reached or is not migrated.
    """
    return read(rows, now, lambda found: list(found))


def read(rows: QuerySet, now: datetime, values: Callable[[QuerySet], list[Row]]) -> list[Row]:
    """Do the same as `read_rows`, but return what `values` reads from the queryset.

    Args:
        values: reads a queryset, for example `lambda rows: list(rows.values_list("params"))`.
    """
    try:
        with savepoint():
            return values(rows)
    except Exception as error:
        if is_away(error):
            raise
    found: list[Row] = []
    keys = list(rows.values_list("pk", flat=True))
    handle_each(keys, lambda pk: found.extend(values(rows.model._default_manager.filter(pk=pk))), now)
    return found


def savepoint() -> AbstractContextManager[Any]:
    """A savepoint if the next statement after an error needs one. Only PostgreSQL needs it, inside a transaction."""
    needed = connection.in_atomic_block and connection.vendor == "postgresql"
    return transaction.atomic() if needed else nullcontext()


def handle_each(keys: Iterable[int], handle: Callable[[int], object], now: datetime) -> int:
    """Call `handle` for each execution, in a transaction of its own. Returns how many calls succeeded.

    If a call raises an error, the execution is set aside.

    Raises:
        django.db.DatabaseError: the database cannot be reached or is not migrated.
    """
    done = 0
    for pk in keys:
        try:
            with transaction.atomic():
                handle(pk)
            done += 1
        except Exception as error:
            if is_away(error):
                raise
            fail_row(pk, error, now)
    return done
