"""Removes the records of processes, breakers, replays, backfills, refused rows, the HTTP API, tallies and alerts."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef

from scheduling.conf import get_conf
from scheduling.core.breaker import BreakerState
from scheduling.execution.retention.alert_records import remove_alert_records
from scheduling.execution.retention.api_records import remove_api_records, remove_in_batches
from scheduling.execution.retention.pruned import Pruned
from scheduling.execution.retention.revision_records import remove_revisions
from scheduling.models import (
    Backfill,
    Breaker,
    HandlerSet,
    KnownHandler,
    LimitKey,
    LimitPlace,
    MovedRun,
    Process,
    RefusedRow,
    Replay,
    ReplayChunk,
    ReplayGroup,
    Tally,
    UncountedSkip,
)
from scheduling.models.backfill import OPEN as OPEN_BACKFILLS
from scheduling.models.replay import OPEN


def remove_records(cutoff: datetime, now: datetime, done: Pruned, *, dry_run: bool) -> None:
    """Remove processes without a heartbeat since the cutoff, sets of handlers without a process, and replays and
    backfills that ended before the cutoff.

    The record of a refused row is removed when the row is no longer refused, and a circuit breaker or the key of a
    limit when it keeps no run waiting and no run has used it since the cutoff. A tally is removed after
    CRON_TALLY_DAYS; what it has counted stays in the totals. A revision of a schedule is removed after
    CRON_REVISION_DAYS, if no execution names it. An alert is removed when it ended before the cutoff.
    """
    gone = Process.objects.filter(heartbeat_at__lt=cutoff)
    done.processes = gone.count() if dry_run else gone.delete()[0]
    done.handler_sets = _handler_sets(cutoff, dry_run)
    refused = RefusedRow.objects.past(now)
    done.refused_rows = refused.count() if dry_run else refused.delete()[0]
    unused = Breaker.objects.filter(state=BreakerState.CLOSED.value, used_at__lt=cutoff)
    done.breakers = unused.count() if dry_run else unused.delete()[0]
    keys = LimitKey.objects.filter(~Exists(LimitPlace.objects.filter(limit=OuterRef("pk"))), used_at__lt=cutoff)
    done.limits = keys.count() if dry_run else keys.delete()[0]
    done.replays = _replays(cutoff, dry_run)
    backfills = Backfill.objects.filter(finished_at__lt=cutoff).exclude(state__in=OPEN_BACKFILLS)
    done.backfills = backfills.count() if dry_run else backfills.delete()[0]
    moved = MovedRun.objects.filter(moved_at__lt=cutoff)
    done.backfills += moved.count() if dry_run else moved.delete()[0]
    remove_api_records(cutoff, now, done, dry_run=dry_run)
    tallies = Tally.objects.filter(hour__lt=now - timedelta(days=get_conf().tally_days))
    done.tallies = tallies.count() if dry_run else remove_in_batches(tallies)
    uncounted = UncountedSkip.objects.filter(at__lt=(now - timedelta(days=get_conf().tally_days)).timestamp())
    done.tallies += uncounted.count() if dry_run else remove_in_batches(uncounted)
    remove_alert_records(cutoff, now, done, dry_run=dry_run)
    remove_revisions(now - timedelta(days=get_conf().revision_days), done, dry_run=dry_run)


def _handler_sets(cutoff: datetime, dry_run: bool) -> int:
    """Remove the sets of handlers that no process has. Returns how many there were."""
    unused = HandlerSet.objects.filter(created_at__lt=cutoff, processes=None)
    ids = list(unused.values_list("pk", flat=True))
    removed = 0
    for pk in ids:
        with suppress(IntegrityError), transaction.atomic():  # a process with these handlers may just start
            if not dry_run:
                known = KnownHandler.objects.filter(handler_set=pk)
                known._raw_delete(known.db)
                HandlerSet.objects.filter(pk=pk)._raw_delete(known.db)
        removed += 1
    return removed


def _replays(cutoff: datetime, dry_run: bool) -> int:
    """Remove the replays that ended before the cutoff. Returns how many there were.

    Each replay is removed in its own transaction, because a replay may have hundreds of chunks.
    """
    ids = list(Replay.objects.filter(finished_at__lt=cutoff).exclude(state__in=OPEN).values_list("pk", flat=True))
    for pk in [] if dry_run else ids:
        with transaction.atomic():
            chunks = ReplayChunk.objects.filter(replay=pk)
            chunks._raw_delete(chunks.db)
            ReplayGroup.objects.filter(replay=pk)._raw_delete(chunks.db)
            Replay.objects.filter(pk=pk)._raw_delete(chunks.db)
    return len(ids)
