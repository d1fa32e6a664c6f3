"""Gives places on that no consumer has given on: their holder was killed, or a span of starts has room again."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from scheduling.broker import Broker
from scheduling.core.lifecycle import WAITING, State
from scheduling.execution.given_places import give_places, publish_woken, wake
from scheduling.execution.key_facts import GRANTED, HELD, WAITS, facts_of, whole_keys
from scheduling.execution.key_rows import starts_of
from scheduling.execution.lowered_limits import LoweredLimits
from scheduling.handlers import handlers
from scheduling.handlers.targets import handler_named
from scheduling.models import LimitKey, LimitPlace, SchedulerExecution
from scheduling.models.prepared import Prepared
from scheduling.processes.database import is_away

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
    _free_unused(now)
    lowered, rules, unlimited = LoweredLimits(), {}, []
    limits = _limits_with_waiting_runs()
    facts = facts_of([limit.pk for limit in limits])
    for limit in limits:
        handler = handler_named(limit.type, limit.name)
        if handler is None:
            continue  # another release knows it
        if handler.limit is None:
            unlimited.append(limit.pk)
            continue
        own = lowered.apply(limit.type, limit.name, handler.limit)
        known = facts[limit.pk]
        if own.room(known.taken, starts_of(limit), now, known.granted):  # looked at again while the row is locked
            rules[limit.pk] = own
    woken = [*give_places(rules, now), *_let_go(unlimited, now)]
    publish_woken(woken, broker, now)
    return len(woken)


def _unused(before: datetime) -> QuerySet[LimitPlace, tuple[Any, ...]]:
    """The places, taken before this, of executions that neither run with them nor wait."""
    runs = SchedulerExecution.objects.filter(pk=OuterRef("pk"))
    running = Exists(runs.filter(state=State.RUNNING.value, attempt=OuterRef("attempt")))
    waiting = Exists(runs.in_state(*WAITING))
    rows = LimitPlace.objects.filter(since__lt=before)
    unused = rows.filter(Q(state=HELD) & ~running | Q(state__in=(GRANTED, WAITS)) & ~waiting)
    return unused.order_by("pk").values_list("pk")[:ROWS_PER_SWEEP]


_UNUSED = Prepared(_unused)


def _free_unused(now: datetime) -> None:
    before = now - SETTLED
    if found := whole_keys(pk for (pk,) in _UNUSED.rows(before)):
        # A place that changes in this moment gets another `since`, and stays.
        old = LimitPlace.objects.filter(since__lt=before, pk__in=found)
        old._raw_delete(old.db)


def _awaited() -> QuerySet[LimitKey]:
    waiting = Exists(LimitPlace.objects.filter(limit=OuterRef("pk"), state=WAITS))
    return LimitKey.objects.filter(waiting).order_by("pk")


_FIRST_AWAITED = Prepared(lambda _now: _awaited().values_list("pk")[:KEYS_PER_SWEEP])


def _limits_with_waiting_runs() -> list[LimitKey]:
    """The keys for which runs wait. If there are many, each sweep begins at another one."""
    found = whole_keys(pk for (pk,) in _FIRST_AWAITED.rows())
    if len(found) == KEYS_PER_SWEEP:
        rows = _awaited().values_list("pk", flat=True)
        last = rows.last() or found[-1]
        later = whole_keys(rows.filter(pk__gte=random.randint(found[0], last))[:KEYS_PER_SWEEP])  # noqa: S311 - no secret
        found = later + found[: KEYS_PER_SWEEP - len(later)]
    return _readable(found)


def _readable(keys: list[int]) -> list[LimitKey]:
    """The rows with these keys. One that cannot be read, because of what plain SQL has stored, stops no other."""
    # `used_at` is not needed here.
    rows = LimitKey.objects.defer("used_at")
    try:
        found = rows.in_bulk(keys)
    except Exception as error:
        if is_away(error):
            raise
        if len(keys) < 2:
            return []
        half = len(keys) // 2
        return _readable(keys[:half]) + _readable(keys[half:])
    return [found[pk] for pk in dict.fromkeys(keys) if pk in found]


def _let_go(limits: list[int], now: datetime) -> list[int]:
    """Wake the runs of handlers whose code has no limit any longer."""
    if not limits:
        return []
    rows = LimitPlace.objects.filter(limit__in=limits, state=WAITS).order_by("since", "pk")
    waiting = whole_keys(rows.values_list("pk", flat=True)[:ROWS_PER_SWEEP])
    rows = LimitPlace.objects.filter(pk__in=waiting, state=WAITS)
    rows._raw_delete(rows.db)
    return wake(waiting, now)
