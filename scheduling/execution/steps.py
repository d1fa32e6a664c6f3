"""Stores the steps and cursors of a run in the database, and refuses those of an attempt that was fenced off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import DEFAULT_DB_ALIAS, connection, transaction
from django.utils import timezone as clock

from scheduling.core.steps import SLOW_SECONDS, StepError
from scheduling.execution import cursor_mark
from scheduling.execution.ownership import check_owner
from scheduling.logs import get_logger
from scheduling.models import RunStep

log = get_logger("scheduling.run")


class DatabaseLedger:
    """The marks of one execution, on behalf of one attempt (`handlers.steps.Ledger`)."""

    def __init__(self, execution_id: int, attempt: int) -> None:
        self._execution_id, self._attempt = execution_id, attempt

    def read(self, kind: str, name: str) -> str | None:
        """The stored JSON of a mark; None if there is no such mark."""
        rows = RunStep.objects.filter(execution=self._execution_id, kind=kind, name=name)
        return rows.values_list("value", flat=True).first()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction of the default database.

        Raises:
            StepError: a transaction is open already. It could roll the mark back after the step has been reported.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(transaction.atomic(using=DEFAULT_DB_ALIAS, durable=True))
            except RuntimeError as error:
                raise StepError(
                    "A step, run.each, run.atomic and run.checkpoint have a transaction of their own. Call them "
                    "outside of transaction.atomic()."
                ) from error
            yield

    def write(self, kind: str, name: str, value: str) -> None:
        """Store a mark in the open transaction. The caller commits right after this.

        Raises:
            FencedOff: the attempt does not own its execution any more.
        """
        if kind == RunStep.Kind.CURSOR.value and self._moved(name, value):
            return
        self.check_owner()
        columns = {"value": value, "attempt": self._attempt, "stored_at": clock.now()}
        RunStep.objects.create(execution_id=self._execution_id, kind=kind, name=name, **columns)

    def store(self, name: str, value: str) -> None:
        """Store the position of a cursor by itself, in a transaction of its own.

        Raises:
            FencedOff: the attempt does not own its execution any more.
            StepError: a transaction is open already.
        """
        commits = not connection.in_atomic_block and connection.get_autocommit()
        if not (commits and self._moved(name, value)):
            with self.transaction():
                self.write(RunStep.Kind.CURSOR.value, name, value)

    def _moved(self, name: str, value: str) -> bool:
        return cursor_mark.move(self._execution_id, self._attempt, name, value)

    def check_owner(self) -> None:
        """Check that the attempt still owns its execution. In a transaction, the row is locked until its end.

        Raises:
            FencedOff: the attempt does not own its execution any more.
        """
        check_owner(self._execution_id, self._attempt)

    def took(self, name: str, seconds: float) -> None:
        """Warn if a step has held the write lock of SQLite for long."""
        if connection.vendor == "sqlite" and seconds > SLOW_SECONDS:
            log.warning(
                "The step %r took %.0f s. With SQLite, its transaction locks the whole database for this time. Work "
                "that leaves the database belongs into a step with atomic=False.",
                name,
                seconds,
            )
