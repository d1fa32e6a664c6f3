"""Store: output and progress of runs into the database while they go on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from scheduling.consumer.running import Running
from scheduling.core.lifecycle import State
from scheduling.core.text import clean
from scheduling.models import Output, SchedulerExecution

CHUNK_LIMIT = 1_000_000
"""Characters in one row; MySQL's packets have a limit."""


def store_output(runs: Iterable[Running], now: datetime) -> None:
    """Write what each run has ready, and its progress if that moved.

    A chunk belongs to its attempt whoever owns the execution by now: it was printed.
    """
    rows: list[Output] = []
    for each in runs:
        text = each.unstored + each.output.take()
        each.unstored = text
        sequence = each.sequence
        for start in range(0, len(text), CHUNK_LIMIT):
            part = clean(text[start : start + CHUNK_LIMIT], CHUNK_LIMIT)
            attempt = each.delivery.message.attempt
            rows.append(
                Output(execution_id=each.execution_id, attempt=attempt, sequence=sequence, text=part, created_at=now)
            )
            sequence += 1
        if each.outcome is None and (each.progress, each.pid) != each.shown:
            SchedulerExecution.objects.filter(
                pk=each.execution_id, attempt=each.delivery.message.attempt, state=State.RUNNING.value
            ).update(progress=each.progress, pid=each.pid)
            each.shown = (each.progress, each.pid)
    if rows:
        # A commit whose answer was lost is repeated: what is there already is the same text.
        Output.objects.bulk_create(rows, ignore_conflicts=True)
    # Only now is it stored: an error above leaves it for the next turn.


def mark_stored(runs: Iterable[Running]) -> None:
    """The transaction that wrote the runs' output is committed."""
    for each in runs:
        if each.unstored:
            each.sequence += -(-len(each.unstored) // CHUNK_LIMIT)
            each.unstored = ""
