"""Renews leases, and finds runs that are lost or should be cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from scheduling.consumer.running import Running
from scheduling.core.chunks import chunks
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.processes.identity import container_id


def renew(runs: Sequence[Running], now: datetime, lease_seconds: int) -> None:
    """Extend the leases of these runs, in one update for each part of them."""
    ids = [run.execution_id for run in runs if not run.fenced]
    for part in chunks(ids):
        SchedulerExecution.objects.filter(pk__in=part, state=State.RUNNING.value, consumer=container_id()).update(
            wake_at=now + timedelta(seconds=lease_seconds)
        )


@dataclass(frozen=True)
class Changed:
    """A run that this process no longer owns (`lost`), or that the user `cancelled_by` has asked to cancel."""

    run: Running
    lost: bool = False
    cancelled_by: str = ""


def look(runs: Sequence[Running]) -> list[Changed]:
    """Compare the runs with their rows; returns the runs that are lost or should be cancelled."""
    columns = ("pk", "state", "attempt", "consumer", "execution_key", "cancel_requested_by")
    rows: dict[int, list[Any]] = {}
    for part in chunks([run.execution_id for run in runs]):
        stored = SchedulerExecution.objects.filter(pk__in=part)
        rows |= {pk: rest for pk, *rest in stored.values_list(*columns)}
    found: list[Changed] = []
    for run in runs:
        if run.fenced:
            continue
        state, attempt, consumer, key, cancel_by = rows.get(run.execution_id, (None, None, None, None, ""))
        message = run.delivery.message
        # After a fail-over that has lost rows, a new row may have the id of a run that is under way.
        ours = (state, attempt, consumer) == (State.RUNNING.value, message.attempt, container_id()) and (
            key == (message.execution_key or key)
        )
        if not ours:
            found.append(Changed(run, lost=True))
        elif cancel_by and run.verdict is None:
            found.append(Changed(run, cancelled_by=str(cancel_by)))
    return found
