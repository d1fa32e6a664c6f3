"""Sweeps: compare rows with what should have happened by now, and mend. Loops, never jobs.

Each sweep does one bounded batch and says how many rows it mended. They run inside every
producer; every change is a compare-and-set, so any number may sweep at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from scheduling import replay
from scheduling.brief import Briefs
from scheduling.broker import Broker
from scheduling.claim import plan_anew
from scheduling.core.lifecycle import State
from scheduling.core.outcome import Crashed
from scheduling.dispatch import message_of, park, publish
from scheduling.ledger import Ended
from scheduling.logs import get_logger
from scheduling.lost import Lost
from scheduling.models import Process, Scheduler, SchedulerExecution
from scheduling.settlement import CLAIM_GRACE, announce, settle_attempt

log = get_logger(__name__)

BATCH = 200
PUBLISH_BATCH = 1_000
PUBLISH_SECONDS = 2.0
"""How long one round may go on publishing what a broker that was away has left behind."""

RETRY_GRACE = timedelta(seconds=10)
"""How late a retry may be whose message was never confirmed, before it is published anew."""

CONFIRMED_GRACE = timedelta(seconds=30)
"""The same for a confirmed one: behind a backlog it is late and not lost, and would only become a copy."""

SILENT_AFTER = timedelta(seconds=60)
"""A process that has not renewed its heartbeat for so long is shown as silent."""


@dataclass
class Swept:
    """Rows mended by one round."""

    planned: int = 0
    leases: int = 0
    claims: int = 0
    retries: int = 0
    lost: int = 0
    replayed: int = 0


def sweep(broker: Broker, now: datetime, briefs: Briefs | None = None, lost: Lost | None = None) -> Swept:
    """One round of every sweep.

    Args:
        lost: remembers from round to round which rows seem to have no message.
    """
    return Swept(
        planned=plan_stale(now),
        leases=recover_leases(broker, now, briefs or Briefs(time.monotonic)),
        claims=_while_full(publish_claimed, broker, now),
        retries=_while_full(publish_retries, broker, now),
        lost=lost.sweep(broker, now) if lost is not None else 0,
        replayed=replay.sweep(broker, now),
    )


def _while_full(publish_batch: Callable[[Broker, datetime], int], broker: Broker, now: datetime) -> int:
    """Batches until one is not full, for a bounded time: a backlog of an hour is gone in seconds."""
    count, until = 0, time.monotonic() + PUBLISH_SECONDS
    while True:
        done = publish_batch(broker, now)
        count += done
        if done < PUBLISH_BATCH or time.monotonic() > until:
            return count


def plan_stale(now: datetime, limit: int = BATCH) -> int:
    """Plan the schedules that plain SQL has changed; an index holds only those."""
    with transaction.atomic():
        ids = list(
            Scheduler.objects.filter(plan_stale=1)
            .order_by("id")
            .select_for_update(skip_locked=True)
            .values_list("pk", flat=True)[:limit]
        )
        if not ids:
            return 0
        planned = plan_anew(ids, now)
    log.info("Planned %s schedules that were changed outside", planned)
    return planned


def recover_leases(broker: Broker, now: datetime, briefs: Briefs, limit: int = BATCH) -> int:
    """End the attempts whose lease has run out as crashed; the retry policy decides what follows."""
    overdue = list(
        SchedulerExecution.objects.filter(state=State.RUNNING.value, wake_at__lt=now).order_by("wake_at")[:limit]
    )
    recovered = 0
    for execution in overdue:
        ended = Ended(execution.pk, execution.attempt, execution.started_at or now, execution.consumer, execution.pid)
        message = message_of(execution)
        policy = briefs.get(message).policy
        result = settle_attempt(ended, Crashed(lost=True), policy, now, embedded=broker.embedded, lease_before=now)
        if result.state is None:
            continue  # renewed or settled meanwhile
        recovered += 1
        announce(
            result,
            type_=execution.type,
            target_id=execution.target_id,
            name=execution.target_name,
            scheduler_id=execution.scheduler_id,
        )
        # A retry is due at once, and a consumer takes it from its row, ahead of the queue. If none does
        # so within RETRY_GRACE it is published.
        if result.state is State.FAILED and not broker.embedded:
            park(execution, broker, now, result.error, result.retries)
    return recovered


def publish_claimed(broker: Broker, now: datetime, limit: int = PUBLISH_BATCH) -> int:
    """Publish what was claimed and never confirmed: its producer died, or the broker was away."""
    with transaction.atomic():
        overdue = list(
            SchedulerExecution.objects.filter(state=State.CLAIMED.value, wake_at__lt=now)
            .order_by("wake_at")
            .select_for_update(skip_locked=True)[:limit]
        )
        # Push them on first: the next sweep, here or elsewhere, must not publish them again at once.
        ids = [execution.pk for execution in overdue]
        if ids:
            columns = {"wake_at": now + CLAIM_GRACE}
            if broker.embedded:  # claimed for a broker that is no longer configured
                columns = {"state": State.QUEUED.value, "wake_at": now, "published_at": now}  # type: ignore[dict-item]
            SchedulerExecution.objects.filter(pk__in=ids).update(**columns)
    return publish(overdue, broker)


def publish_retries(broker: Broker, now: datetime, limit: int = PUBLISH_BATCH) -> int:
    """Publish retries whose message was never confirmed or did not come back in time."""
    if broker.embedded:
        return 0
    late = Q(published_at=None, wake_at__lt=now - RETRY_GRACE) | Q(wake_at__lt=now - CONFIRMED_GRACE)
    with transaction.atomic():
        overdue = list(
            SchedulerExecution.objects.filter(late, state=State.RETRYING.value, wake_at__lt=now - RETRY_GRACE)
            .order_by("wake_at")
            .select_for_update(skip_locked=True)[:limit]
        )
        SchedulerExecution.objects.filter(pk__in=[execution.pk for execution in overdue]).update(
            state=State.CLAIMED.value, wake_at=now + CLAIM_GRACE
        )
    return publish(overdue, broker)


def silent_processes(now: datetime) -> int:
    """How many processes stopped without saying so; shown in the admin."""
    return Process.objects.filter(stopped_at__isnull=True, heartbeat_at__lt=now - SILENT_AFTER).count()
