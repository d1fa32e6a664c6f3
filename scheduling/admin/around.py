"""What stands around a row that waits: the processes that would move it on, and the broker."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from scheduling.admin.text import first_line
from scheduling.admin.times import relative
from scheduling.admin.transport import transport
from scheduling.broker import BrokerError
from scheduling.core.lifecycle import State
from scheduling.models import Process, Scheduler, SchedulerExecution
from scheduling.reconcile import RETRY_GRACE, SILENT_AFTER
from scheduling.settlement import CLAIM_GRACE

NEEDS_CONSUMER = (State.CLAIMED.value, State.QUEUED.value, State.RETRYING.value)

BROKER_SECONDS = 10.0
"""How long an answer about the broker holds; a page that is left open asks every few seconds."""

OVERDUE_AFTER = timedelta(seconds=30)
"""A producer claims within a second; so late, none is there."""

_broker_said: tuple[float, str] = (0.0, "")


@dataclass(frozen=True)
class Around:
    """None where nobody looked, for it does not matter to the row as it stands.

    Args:
        consumers: how many serve its queue.
        producers: how many would mend it.
        claimant: the process that claimed it, if that was a producer that has ended or fallen silent.
        broker: why the broker cannot be used; empty if it can.
    """

    consumers: int | None = None
    producers: int | None = None
    claimant: Process | None = None
    broker: str = ""


def around(row: SchedulerExecution, now: datetime) -> Around:
    """Look at what matters to the row as it stands."""
    stuck = is_stuck(row, now)
    unconfirmed = stuck and row.state == State.CLAIMED.value
    return Around(
        consumers=consumers_alive(row.queue, now) if row.state in NEEDS_CONSUMER else None,
        producers=producers_alive(now) if stuck else None,
        claimant=_gone(row.container_id, now) if unconfirmed and not row.attempt else None,
        broker=broker_problem() if unconfirmed else "",
    )


def is_stuck(row: SchedulerExecution, now: datetime) -> bool:
    """Whether it should have moved on, so that a producer's sweep must see to it."""
    if row.state == State.CLAIMED.value and row.wake_at is not None:
        # One that is to wait for its time is claimed for longer, and stands further ahead.
        return row.wake_at <= now + CLAIM_GRACE and now - row.executed_at >= CLAIM_GRACE
    if row.state == State.RUNNING.value:
        return row.wake_at is not None and row.wake_at < now
    return row.state == State.RETRYING.value and row.wake_at is not None and row.wake_at < now - RETRY_GRACE


def consumers_alive(queue: str, now: datetime) -> int:
    """How many consumers of a queue have shown a heartbeat lately."""
    rows = _alive(Process.Kind.CONSUMER, now).values_list("info", flat=True)
    # Before its first heartbeat a consumer has not said which queue it serves.
    return sum(1 for info in rows if not isinstance(info, dict) or info.get("queue", queue) == queue)


def producers_alive(now: datetime) -> int:
    """How many producers have shown a heartbeat lately."""
    return _alive(Process.Kind.PRODUCER, now).count()


def broker_problem() -> str:
    """Why the broker cannot be used at this moment, in a line; empty if it can."""
    global _broker_said
    asked_at, said = _broker_said
    if asked_at and time.monotonic() - asked_at < BROKER_SECONDS:
        return said
    try:
        with transport() as broker:
            if not broker.embedded:  # whose counts would read the whole queue
                broker.counts()
        said = ""
    except BrokerError as error:
        said = first_line(str(error), 300)
    _broker_said = (time.monotonic(), said)
    return said


def overdue(row: Scheduler, now: datetime) -> list[str]:
    """Why a schedule that has fallen due has no execution; empty while all is well."""
    if not row.status or row.next_run_at is None or row.next_run_at > now - OVERDUE_AFTER:
        return []
    found = [_("It fell due %(when)s, and no producer has claimed it.") % {"when": relative(row.next_run_at, now)}]
    if not producers_alive(now):
        found.append(
            _("No producer is alive: start one with manage.py run_scheduler; what was missed runs or is told.")
        )
    return found


def _alive(kind: Process.Kind, now: datetime) -> QuerySet[Process]:
    return Process.objects.filter(kind=kind, stopped_at__isnull=True, heartbeat_at__gte=now - SILENT_AFTER)


def _gone(name: str, now: datetime) -> Process | None:
    row = Process.objects.filter(container_id=name, kind=Process.Kind.PRODUCER).first()
    if row is None or (row.stopped_at is None and row.heartbeat_at >= now - SILENT_AFTER):
        return None
    return row
