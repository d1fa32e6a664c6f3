"""Arrivals: what a message that was taken stands for, judged by its row. The row is the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q

from scheduling import ledger
from scheduling.broker import Delivery
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution


@dataclass(frozen=True)
class Started:
    """The attempt of `delivery.message` has begun and is this process's."""

    delivery: Delivery


@dataclass(frozen=True)
class Copy:
    """There is nothing to do for it any more."""

    delivery: Delivery


Arrival = Started | Copy


def begin(delivery: Delivery, consumer: str, now: datetime, lease_until: datetime) -> Arrival:
    """Start the attempt a message asks for, or say what it stands for instead.

    A message that was nacked or rejected (the broker took no retry, or the immediate queue) still names
    the attempt that has failed. If its row waits for a retry that is due, or to be published, it is as
    good as any other.
    """
    message = delivery.message
    assert message.execution_id is not None  # noqa: S101 - strangers are adopted first
    if ledger.start(message.execution_id, message.attempt, consumer, now, lease_until):
        return Started(delivery)
    row = (
        SchedulerExecution.objects.filter(
            Q(state=State.CLAIMED.value) | Q(state=State.RETRYING.value, wake_at__lte=now),
            pk=message.execution_id,
            attempt__gte=message.attempt,
        )
        .values_list("attempt", "retry_base")
        .first()
    )
    if row is None:
        return Copy(delivery)
    attempt, retry_base = row
    if not ledger.start(message.execution_id, attempt + 1, consumer, now, lease_until):
        return Copy(delivery)
    following = replace(message, attempt=attempt + 1, retry_count=max(0, attempt - retry_base))
    return Started(replace(delivery, message=following))
