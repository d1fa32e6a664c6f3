"""Gives places on that no consumer has given on: their holder was killed, or a span of starts has room again."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q

from scheduling.broker import Broker
from scheduling.core.lifecycle import WAITING, State
from scheduling.execution.lowered_limits import LoweredLimits
from scheduling.execution.places import GRANTED, HELD, WAITS, free_places, give_places, wake
from scheduling.handlers import handlers
from scheduling.handlers.targets import handler_named
from scheduling.models import LimitKey, LimitPlace, SchedulerExecution

ROWS_PER_SWEEP = 1_000
KEYS_PER_SWEEP = 500

SETTLED = timedelta(seconds=5)
"""A place is looked at only after so long. Its consumer gives it on within this time."""


def give_freed_places(broker: Broker, now: datetime) -> int:
    """Free the places of runs that do not run any longer, and give free places to runs that wait. Returns how many.

    Without a handler that has a limit, no query is made.
    """
    if not any(handler.limit for handler in handlers()):
        return 0
    free_places(_unused(now))
    lowered = LoweredLimits()
    return sum(_give(limit, lowered, broker, now) for limit in _limits_with_waiting_runs())


def _unused(now: datetime) -> list[int]:
    """The executions that have a place, or wait for one, and neither run with it nor wait."""
    runs = SchedulerExecution.objects.filter(pk=OuterRef("pk"))
    running = Exists(runs.filter(state=State.RUNNING.value, attempt=OuterRef("attempt")))
    waiting = Exists(runs.in_state(*WAITING))
    rows = LimitPlace.objects.filter(since__lt=now - SETTLED)
    unused = rows.filter(Q(state=HELD) & ~running | Q(state__in=(GRANTED, WAITS)) & ~waiting)
    return list(unused.order_by("pk").values_list("pk", flat=True)[:ROWS_PER_SWEEP])


def _limits_with_waiting_runs() -> list[LimitKey]:
    """The keys for which runs wait, those that were used longest ago first."""
    waiting = Exists(LimitPlace.objects.filter(limit=OuterRef("pk"), state=WAITS))
    return list(LimitKey.objects.filter(waiting).order_by(F("used_at"), "pk")[:KEYS_PER_SWEEP])


def _give(limit: LimitKey, lowered: LoweredLimits, broker: Broker, now: datetime) -> int:
    handler = handler_named(limit.type, limit.name)
    if handler is None:
        return 0  # another release knows it
    if handler.limit is not None:
        rules = lowered.apply(limit.type, limit.name, handler.limit)
        return wake(give_places(limit.pk, rules, now), broker, now)
    waiting = list(LimitPlace.objects.filter(limit=limit, state=WAITS).values_list("pk", flat=True)[:ROWS_PER_SWEEP])
    free_places(waiting)  # the code has no limit any longer
    return wake(waiting, broker, now)
