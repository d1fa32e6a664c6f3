"""Asks for backfills, and lets producers make their runs."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.broker.database import DatabaseBroker
from scheduling.core.backfill import Options
from scheduling.execution import backfill_sweep
from scheduling.models import Backfill, Scheduler, SchedulerExecution
from scheduling.operations.actor import Actor
from scheduling.operations.backfill_plan import BackfillPlan, plan
from scheduling.operations.backfills import start

FAST = 6_000
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
BROKER = DatabaseBroker()
NO_USER = Actor(None)


def dry_run(row: Scheduler, days: float = 7, since: datetime = MONDAY, **options: Any) -> BackfillPlan:
    """What a backfill of so many days would do. The last instant of the range does not belong to a further day."""
    row.refresh_from_db()
    until = since + timedelta(days=days) - timedelta(seconds=1)
    return plan(NO_USER, row, since, until, Options(**{"per_minute": FAST, **options}), clock.now())


def ask(*rows: Scheduler, key: uuid.UUID | None = None, actor: Actor = NO_USER, **range_and_options: Any) -> Backfill:
    """Start a backfill of these schedules. Returns the one of the first schedule."""
    plans = [dry_run(row, **range_and_options) for row in rows]
    return start(actor, plans, plans[0].options, key or uuid.uuid4()).rows[0]


def sweep(broker: Broker = BROKER, seconds: float = 0, rounds: int = 1) -> int:
    """Let a producer look at the backfills, so many seconds from now. Returns how many runs it has made."""
    return sum(backfill_sweep.sweep(broker, clock.now() + timedelta(seconds=seconds)) for _ in range(rounds))


def sweep_all(broker: Broker = BROKER) -> None:
    """Sweep until no backfill goes on."""
    for second in range(200):
        if not Backfill.objects.filter(state="running").exists():
            return
        sweep(broker, second)
    raise AssertionError("a backfill does not end")


def made(row: Scheduler) -> list[datetime]:
    """The instants of the runs that backfills have made for a schedule, in the order in which they were made."""
    runs = SchedulerExecution.objects.filter(scheduler=row, trigger="backfill").order_by("pk")
    return list(runs.values_list("scheduled_at", flat=True))
