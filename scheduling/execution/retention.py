"""Removes old executions, processes, replays and records of refused rows.

Executions are removed in small batches, so that other work does not have to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from scheduling.core.lifecycle import ENDED
from scheduling.execution.artefacts import remove_with_executions
from scheduling.logs import get_logger
from scheduling.models import Attempt, Output, Process, RefusedRow, Replay, ReplayChunk, SchedulerExecution
from scheduling.models.replay import OPEN
from scheduling.signals import executions_pruned

log = get_logger(__name__)

EXECUTIONS_PER_BATCH = 1000


@dataclass
class Pruned:
    """How many rows one pass of retention removed. `complete` is False if the pass ran out of time."""

    executions: int = 0
    attempts: int = 0
    outputs: int = 0
    processes: int = 0
    replays: int = 0
    refused_rows: int = 0
    complete: bool = True


def prune(
    now: datetime,
    days: int,
    *,
    dry_run: bool = False,
    max_seconds: float | None = None,
    batch: int = EXECUTIONS_PER_BATCH,
    monotonic: Callable[[], float] = time.monotonic,
) -> Pruned:
    """Remove executions that ended more than `days` days ago, with their attempts and output.

    Executions that wait, run or are in the failed inbox are kept at any age. Processes and replays are removed after
    the same time. The record of a refused row is removed when the row is no longer refused. At least one day of history
    is kept. Otherwise an occurrence inside the catch-up window could lose its row and be claimed again.

    Args:
        dry_run: only count the rows, and remove nothing.
        max_seconds: stop after the batch in which this time runs out; None means no limit.

    Raises:
        ValueError: `days` is less than one.
    """
    if days < 1:
        raise ValueError("Keep at least one day: an occurrence that is pruned too early could be claimed again.")
    cutoff = now - timedelta(days=days)
    deadline = monotonic() + max_seconds if max_seconds is not None else None
    done = Pruned()
    cursor = 0
    states = sorted(state.value for state in ENDED)
    # The loop reads rows in the order of the primary key, which is fast in a table of any size. Primary keys grow with
    # time, so the loop ends at the first batch whose last row was claimed after the cutoff.
    while True:
        rows = SchedulerExecution.objects.filter(pk__gt=cursor).order_by("pk")
        window = list(rows.values_list("pk", "state", "finished_at", "executed_at")[:batch])
        if not window:
            break
        cursor = window[-1][0]
        ids = [pk for pk, state, finished, _ in window if state in states and finished and finished < cutoff]
        if ids:
            _remove(ids, dry_run, done)
        if window[-1][3] >= cutoff:
            break
        if deadline is not None and monotonic() >= deadline:
            done.complete = False
            break
    gone = Process.objects.filter(heartbeat_at__lt=cutoff)
    done.processes = gone.count() if dry_run else gone.delete()[0]
    refused = RefusedRow.objects.past(now)
    done.refused_rows = refused.count() if dry_run else refused.delete()[0]
    done.replays = _replays(cutoff, dry_run)
    return done


def _replays(cutoff: datetime, dry_run: bool) -> int:
    """Remove the replays that ended before the cutoff. Returns how many there were.

    Each replay is removed in its own transaction, because a replay may have hundreds of chunks.
    """
    ids = list(Replay.objects.filter(finished_at__lt=cutoff).exclude(state__in=OPEN).values_list("pk", flat=True))
    for pk in [] if dry_run else ids:
        with transaction.atomic():
            chunks = ReplayChunk.objects.filter(replay=pk)
            chunks._raw_delete(chunks.db)
            Replay.objects.filter(pk=pk)._raw_delete(chunks.db)
    return len(ids)


def _remove(ids: list[int], dry_run: bool, done: Pruned) -> None:
    outputs, attempts = Output.objects.filter(execution__in=ids), Attempt.objects.filter(execution__in=ids)
    if dry_run:
        done.executions += len(ids)
        done.outputs += outputs.count()
        done.attempts += attempts.count()
        return
    remove_with_executions(ids)
    for receiver, answer in executions_pruned.send_robust(sender=SchedulerExecution, ids=ids):
        if isinstance(answer, Exception):
            log.error("A receiver of executions_pruned raised: %r: %r", receiver, answer)
    with transaction.atomic():
        # Dependent rows are deleted first, in plain SQL. Django's own cascade would load every row.
        done.outputs += outputs._raw_delete(outputs.db)
        done.attempts += attempts._raw_delete(attempts.db)
        done.executions += SchedulerExecution.objects.filter(pk__in=ids)._raw_delete(outputs.db)
