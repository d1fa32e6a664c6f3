"""Writes the output and the progress of runs to the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from scheduling.consumer.running import Running
from scheduling.core.lifecycle import State
from scheduling.core.text import clean
from scheduling.logs import get_logger
from scheduling.models import Output, SchedulerExecution
from scheduling.processes.database import is_away

log = get_logger(__name__)

CHUNK_LIMIT = 250_000
"""The maximum number of characters in one row. A character takes up to four bytes, so a row takes up to 1 MB. The
smallest default packet limit of MySQL and MariaDB is four times as large."""


def store_output(runs: Iterable[Running], now: datetime) -> None:
    """Write the new output of each run. Also write the run's progress and process id if one of them has changed.

    The output is stored even if another process owns the execution by now, because each row of output belongs to one
    attempt.
    """
    rows: list[Output] = []
    for run in runs:
        text = run.unstored + run.output.take()
        run.unstored = text
        sequence = run.sequence
        for start in range(0, len(text), CHUNK_LIMIT):
            part = clean(text[start : start + CHUNK_LIMIT], CHUNK_LIMIT)
            attempt = run.delivery.message.attempt
            rows.append(
                Output(execution_id=run.execution_id, attempt=attempt, sequence=sequence, text=part, created_at=now)
            )
            sequence += 1
        if run.outcome is None and (run.progress, run.pid) != run.shown:
            SchedulerExecution.objects.filter(
                pk=run.execution_id, attempt=run.delivery.message.attempt, state=State.RUNNING.value
            ).update(progress=run.progress, pid=run.pid)
            run.shown = (run.progress, run.pid)
    if rows:
        # If the answer to a commit was lost, the same rows are written again. The existing rows hold the same text, so
        # conflicts are ignored. Each row has its own insert: one insert of all rows may exceed the packet limit.
        Output.objects.bulk_create(rows, batch_size=1, ignore_conflicts=True)
    # `mark_stored` clears `unstored` after the commit. After an error, the text is written again later.


def store_each(runs: Sequence[Running], now: datetime) -> None:
    """Write the output of runs that have not ended.

    If the database refuses the output of one run, only this output is dropped. The run continues.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    try:
        store_output(runs, now)
    except Exception as error:
        if is_away(error):
            raise
        for run in runs:
            _store_alone(run, now)
    mark_stored(runs)


def _store_alone(run: Running, now: datetime) -> None:
    try:
        store_output([run], now)
    except Exception as error:
        if is_away(error):
            raise
        log.error("Output is given up, the database refuses it: %s", error, extra={"execution": run.execution_id})
        run.unstored = ""


def mark_stored(runs: Iterable[Running]) -> None:
    """Forget the output that `store_output` wrote. Call this function after the transaction is committed."""
    for run in runs:
        if run.unstored:
            run.sequence += -(-len(run.unstored) // CHUNK_LIMIT)
            run.unstored = ""
