"""The lease by which one process at a time evaluates the alerts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q

from scheduling.alerts.sign_of_life import Delivery
from scheduling.conf import get_conf
from scheduling.core.text import visible_text
from scheduling.models.alert_watch import ONLY, AlertWatch

TURNS = 3
"""A lease lasts as long as so many turns."""

LEASE_SECONDS = 30
"""So long after its last turn a dead process keeps the lease, with the default of CRON_ALERTS_SECONDS."""


def lease_seconds() -> int:
    """So long after its last turn a dead process keeps the lease."""
    return TURNS * get_conf().alerts_seconds


def take_lease(holder: str, now: datetime, seconds: int = LEASE_SECONDS) -> bool:
    """Take or renew the lease. Returns whether this process holds it.

    A lease that ends much later than it can is no lease: plain SQL or a wrong clock has written it. A process that
    stands by only reads, so it needs no lock.

    Args:
        holder: the name of this process (`processes.identity.container_id`).
        now: the time of the database.
        seconds: the length of the lease.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    second = int(now.timestamp())
    free = Q(holder=holder) | Q(until__lt=second) | Q(until__gt=second + 10 * seconds)
    row = AlertWatch.objects.filter(pk=ONLY)
    if row.filter(free).exists():
        return bool(row.filter(free).update(holder=holder, until=second + seconds))
    if row.exists():
        return False
    AlertWatch.objects.bulk_create([AlertWatch(pk=ONLY)], ignore_conflicts=True)
    return bool(row.filter(free).update(holder=holder, until=second + seconds))


def holds_lease(holder: str, now: datetime) -> bool:
    """Whether this process still holds the lease."""
    return AlertWatch.objects.filter(pk=ONLY, holder=holder, until__gte=int(now.timestamp())).exists()


def give_lease_back(holder: str) -> None:
    """Let another process take the lease at once. A process that stops properly does this."""
    AlertWatch.objects.filter(pk=ONLY, holder=holder).update(until=0)


def note_evaluation(now: datetime, heartbeat: Delivery | None) -> None:
    """Record that an evaluation has ended.

    Args:
        heartbeat: how the last heartbeat to the monitor has ended; None if that is not known.
    """
    AlertWatch.objects.filter(pk=ONLY).update(evaluated_at=int(now.timestamp()), **_columns(heartbeat))


def note_heartbeat(holder: str, heartbeat: Delivery | None) -> None:
    """Record how the last heartbeat has ended, if this process still holds the lease."""
    if columns := _columns(heartbeat):
        AlertWatch.objects.filter(pk=ONLY, holder=holder).update(**columns)


def _columns(heartbeat: Delivery | None) -> dict[str, Any]:
    """The time of the last one that was delivered stays while later ones are not."""
    if heartbeat is None:
        return {}
    delivered = {} if heartbeat.at is None else {"heartbeat_at": int(heartbeat.at.timestamp())}
    return {"heartbeat_error": visible_text(heartbeat.problem, 300)[:300], **delivered}
