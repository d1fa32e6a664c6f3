"""Writes the output and the progress of runs to the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from django.db import transaction

from scheduling.consumer.output_tail import NOTE_SEQUENCE
from scheduling.consumer.running import Running
from scheduling.core.chunks import chunks
from scheduling.core.lifecycle import State
from scheduling.core.text import clean
from scheduling.execution.ownership import owned
from scheduling.logs import get_logger
from scheduling.models import Output, SchedulerExecution
from scheduling.models.output import CHUNK_LIMIT
from scheduling.processes.database import is_away

log = get_logger(__name__)


def store_output(runs: Iterable[Running], now: datetime) -> None:
    """Write the new output of each run. Also write the run's progress and process id if one of them has changed.

    The caller has checked in the same transaction that the attempts own their executions. After a refusal, the log of
    the consumer has the output nevertheless.
    """
    rows: list[Output] = []
    shown = defaultdict[tuple[int, str, int | None], list[int]](list)
    for run in runs:
        text = run.unstored + run.output.take()
        run.unstored = text
        sequence = run.sequence
        for start in range(0, len(text), CHUNK_LIMIT):
            chunk = clean(text[start : start + CHUNK_LIMIT], CHUNK_LIMIT)
            attempt = run.delivery.message.attempt
            rows.append(
                Output(execution_id=run.execution_id, attempt=attempt, sequence=sequence, text=chunk, created_at=now)
            )
            sequence += 1
        rows += _tail_rows(run, now)
        if run.outcome is None and (run.progress, run.pid) != run.shown:
            shown[run.delivery.message.attempt, run.progress, run.pid].append(run.execution_id)
            run.shown = (run.progress, run.pid)
    for (attempt, progress, pid), keys in shown.items():
        for part in chunks(keys):  # the runs of a batch are many, and have the same values
            SchedulerExecution.objects.filter(pk__in=part, attempt=attempt, state=State.RUNNING.value).update(
                progress=progress, pid=pid
            )
    for batch in _batches(rows):
        # If the answer to a commit was lost, the same rows are written again. The existing rows hold the same text, so
        # conflicts are ignored.
        Output.objects.bulk_create(batch, ignore_conflicts=True)
    # `mark_stored` clears `unstored` after the commit. After an error, the text is written again later.


def _batches(rows: Iterable[Output]) -> Iterator[list[Output]]:
    """The rows in batches for one insert each. A batch has no more characters than one row may have.

    One insert of all rows may exceed the packet limit of the database, but an insert for each row takes long.
    """
    batch: list[Output] = []
    length = 0
    for row in rows:
        if batch and length + len(row.text) > CHUNK_LIMIT:
            yield batch
            batch, length = [], 0
        batch.append(row)
        length += len(row.text)
    if batch:
        yield batch


def _tail_rows(run: Running, now: datetime) -> list[Output]:
    """The new rows of the end of the output. Rows that are left out from now on are deleted."""
    tail = run.output.tail
    if tail is None:
        return []
    tail.flush()
    attempt = run.delivery.message.attempt
    found = tail.unstored(now.timestamp())
    if found and found[0][0] == NOTE_SEQUENCE:
        own = Output.objects.filter(execution_id=run.execution_id, attempt=attempt)
        own.filter(sequence__gte=NOTE_SEQUENCE, sequence__lt=tail.first).delete()
    return [
        Output(
            execution_id=run.execution_id,
            attempt=attempt,
            sequence=sequence,
            text=clean(text, CHUNK_LIMIT),
            created_at=now,
        )
        for sequence, text in found
    ]


def store_each(runs: Sequence[Running], now: datetime) -> None:
    """Write the output of runs that have not ended, and drop that of attempts that were fenced off.

    If the database refuses the output of one run, only this output is dropped. The run continues.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    try:
        _store_owned(runs, now)
    except Exception as error:
        if is_away(error):
            raise
        for run in runs:
            _store_alone(run, now)
    mark_stored(runs)


def _store_owned(runs: Iterable[Running], now: datetime) -> None:
    """Write the new output of the runs that this process still owns, in one transaction."""
    new = {(run.execution_id, run.delivery.message.attempt): run for run in runs if _has_news(run)}
    if new:
        with transaction.atomic():
            still = {key for part in chunks(list(new)) for key in owned(part)}
            store_output([run for key, run in new.items() if key in still], now)


def _has_news(run: Running) -> bool:
    return bool(run.unstored or run.output.waiting or run.output.tail or (run.progress, run.pid) != run.shown)


def _store_alone(run: Running, now: datetime) -> None:
    try:
        _store_owned([run], now)
    except Exception as error:
        if is_away(error):
            raise
        log.error("Output is given up, the database refuses it: %s", error, extra={"execution": run.execution_id})
        run.give_up_output()


def mark_stored(runs: Iterable[Running]) -> None:
    """Forget the output that `store_output` wrote. Call this function after the transaction is committed."""
    for run in runs:
        if run.unstored:
            run.sequence += -(-len(run.unstored) // CHUNK_LIMIT)
            run.unstored = ""
        if run.output.tail is not None:
            run.output.tail.mark_stored()
