"""Runs: what waits longer than it should."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from scheduling.core.lifecycle import State
from scheduling.doctor.finding import Finding, counted, fail, ok, span, warn
from scheduling.models import SchedulerExecution

QUEUED_LONG = timedelta(minutes=15)
CLAIMED_LONG = timedelta(minutes=2)
LEASE_LONG = timedelta(minutes=2)


def examine(now: datetime) -> Iterator[Finding]:
    """The oldest of each state that is left by itself."""
    yield _queued(now)
    yield from _overdue(
        State.CLAIMED,
        now - CLAIMED_LONG,
        warn(
            "claimed",
            "{} claimed and not confirmed by the broker.",
            "It is published again every few seconds: see that the broker is reachable and a producer runs.",
        ),
    )
    yield from _overdue(
        State.RUNNING,
        now - LEASE_LONG,
        fail(
            "leases",
            "{} whose process is gone, not recovered yet.",
            "Producers recover them every few seconds: start one, or read what they log.",
        ),
    )


def _queued(now: datetime) -> Finding:
    waiting = SchedulerExecution.objects.overdue(State.QUEUED, now)
    oldest = waiting.values_list("wake_at", flat=True).first()
    if oldest is None:
        return ok("queued", "Nothing waits.")
    seen = f"{counted(waiting.count(), 'run')} waiting, the oldest for {span((now - oldest).total_seconds())}."
    if now - oldest > QUEUED_LONG:
        return warn("queued", seen, "Start more consumers, or give them more --concurrency.")
    return ok("queued", seen)


def _overdue(state: State, before: datetime, template: Finding) -> Iterator[Finding]:
    count = SchedulerExecution.objects.overdue(state, before).count()
    if count:
        yield Finding(template.check, template.level, template.seen.format(counted(count, "run")), template.advice)
