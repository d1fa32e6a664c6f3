"""Prune: one pass of retention. It removes what is old, in small batches, so that other work does not have to wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from scheduling.conf import get_conf
from scheduling.core.retention import RetentionPolicy, Rule
from scheduling.execution.retention import expiry
from scheduling.execution.retention.by_age import by_age
from scheduling.execution.retention.by_output import by_output
from scheduling.execution.retention.by_schedule import by_count, by_own_policies
from scheduling.execution.retention.one_time import remove_spent, spent
from scheduling.execution.retention.pace import Pace
from scheduling.execution.retention.policies import Policies
from scheduling.execution.retention.pruned import Pruned
from scheduling.execution.retention.records import remove_records
from scheduling.execution.retention.windows import window_of
from scheduling.execution.retention.work import Released, Work

_MARKED = RetentionPolicy(None, ended_days=0)
"""The policy of a failure that has been taken out of the inbox: it is removed at once."""


def all_released(ids: Sequence[int]) -> set[int]:
    """The answer of a transport without a failed queue."""
    return set(ids)


def prune(
    now: datetime,
    days: int | None = None,
    *,
    dry_run: bool = False,
    max_seconds: float | None = None,
    batch: int | None = None,
    released: Released = all_released,
    monotonic: Callable[[], float] = time.monotonic,
) -> Pruned:
    """Remove what the retention of the settings and of the schedules does not keep.

    What waits or runs is kept at any age. So is an execution within the catch-up window, because its occurrence could
    be claimed again, and the last result of a schedule with a cron expression. Processes and replays are removed after
    `days`. The record of a refused row is removed when the row is no longer refused.

    Args:
        days: replaces CRON_RETENTION_DAYS.
        dry_run: only count the rows, and remove nothing.
        max_seconds: stop after the batch in which this time runs out; None means no limit.
        batch: the size of each batch; None means that the size is adapted to the measured time.
        released: see `Work`.

    Raises:
        ValueError: `days` is less than one.
        django.db.DatabaseError: the database cannot be reached.
    """
    if days is not None and days < 1:
        raise ValueError("Keep at least one day: an occurrence that is pruned too early could be claimed again.")
    conf, done = get_conf(), Pruned()
    catch_up = timedelta(seconds=conf.catch_up_seconds)
    pace = Pace(done, max_seconds, batch, monotonic)
    work = Work(now, Policies(conf.retention(days)), pace, done, catch_up, released, dry_run)
    steps = (_expire, by_age, by_own_policies, by_count, by_output, _one_time)
    done.complete = all(step(work) for step in steps)
    cutoff = now - timedelta(days=days if days is not None else conf.retention_days)
    remove_records(cutoff, now, done, dry_run=dry_run)
    return done


def _expire(work: Work) -> bool:
    """Take old failures out of the inbox, and remove their rows when the failed queue no longer has their messages."""
    if work.policies.has_failed_days and not expiry.replay_is_open() and not _mark(work):
        return False
    cursor = 0
    while not work.dry_run:
        window = window_of(expiry.marked().filter(pk__gt=cursor), work.pace.window)
        if not window.keys:
            break
        cursor = window.keys[-1]
        if not work.apply({row: Rule.FAILED for row in window.rows if work.rule(row, _MARKED)}):
            return False
    return True


def _mark(work: Work) -> bool:
    cursor = 0
    while True:
        window = window_of(expiry.failures().filter(pk__gt=cursor), work.pace.window)
        if not window.keys:
            return True
        cursor = window.keys[-1]
        old = [row for row in window.rows if work.rule(row, work.policies.of(row)) is Rule.FAILED]
        last = work.policies.last_runs(old)
        ages = [(row.pk, work.policies.of(row).failed_days or 0) for row in old if row.pk not in last]
        if work.dry_run:
            work.done.rules[Rule.FAILED] += len(ages)
        going = work.pace.end_batch()
        while going and ages and not work.dry_run:
            batch, ages = ages[: work.pace.size], ages[work.pace.size :]
            expiry.mark(batch, work.now)
            going = work.pace.end_batch(len(batch))
        if not going:
            return False


def _one_time(work: Work) -> bool:
    """Remove spent one-time schedules. Returns whether the pass has time to go on."""
    days = get_conf().retention_one_time_days
    if days is None:
        return True
    before, cursor = work.cutoff(days), 0
    while True:
        keys = list(spent(before).filter(pk__gt=cursor).values_list("pk", flat=True)[: work.pace.window])
        if not keys:
            return True
        cursor = keys[-1]
        work.done.rules[Rule.ONE_TIME] += remove_spent(keys, before, dry_run=work.dry_run)
        if not work.pace.end_batch():
            return False
