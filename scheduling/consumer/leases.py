"""Leases: renewing what this process owns, and noticing what it owns no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduling.consumer.running import Running
from scheduling.core.lifecycle import State
from scheduling.identity import container_id
from scheduling.models import SchedulerExecution


def renew(runs: Sequence[Running], now: datetime, lease_seconds: int) -> None:
    """Move the leases' end: one update for all, whatever their number."""
    ids = [each.execution_id for each in runs if not each.fenced]
    if ids:
        SchedulerExecution.objects.filter(pk__in=ids, state=State.RUNNING.value, consumer=container_id()).update(
            wake_at=now + timedelta(seconds=lease_seconds)
        )


@dataclass(frozen=True)
class Changed:
    """A run whose row says something new: `lost` to another process, or cancelled by `cancelled_by`."""

    run: Running
    lost: bool = False
    cancelled_by: str = ""


def look(runs: Sequence[Running]) -> list[Changed]:
    """Compare the runs with their rows."""
    rows = {
        pk: rest
        for pk, *rest in SchedulerExecution.objects.filter(pk__in=[each.execution_id for each in runs]).values_list(
            "pk", "state", "attempt", "consumer", "cancel_requested_by"
        )
    }
    found: list[Changed] = []
    for each in runs:
        if each.fenced:
            continue
        state, attempt, consumer, cancel_by = rows.get(each.execution_id, (None, None, None, ""))
        ours = (state, attempt, consumer) == (State.RUNNING.value, each.delivery.message.attempt, container_id())
        if not ours:
            found.append(Changed(each, lost=True))
        elif cancel_by and each.verdict is None:
            found.append(Changed(each, cancelled_by=str(cancel_by)))
    return found
