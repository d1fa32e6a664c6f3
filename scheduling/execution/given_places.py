"""Gives free places of limited handlers to runs that wait, in the order of their arrival, and frees places."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Coalesce, Least

from scheduling.broker import Broker
from scheduling.core.lifecycle import CLAIM_GRACE, State
from scheduling.core.run_limit import Limit
from scheduling.execution.key_facts import GRANTED, HELD, WAITS, facts_of, first_waiting
from scheduling.execution.key_rows import starts_of
from scheduling.execution.publish import publish_soon
from scheduling.models import LimitKey, LimitPlace, SchedulerExecution
from scheduling.processes.set_aside import read_rows


def held_places(attempts: Mapping[int, int]) -> list[LimitPlace]:
    """The places of attempts. The next attempt of an execution may have a place of its own by now, which is another.

    Args:
        attempts: maps executions to the attempt.
    """
    held = LimitPlace.objects.filter(pk__in=list(attempts), state=HELD) if attempts else []
    return [place for place in held if place.attempt == attempts[place.pk]]


def leave_lines(executions: Collection[int]) -> None:
    """Remove the places for which executions wait, or which they were given."""
    if executions:
        own = LimitPlace.objects.filter(pk__in=list(executions), state__in=(GRANTED, WAITS))
        own._raw_delete(own.db)


def give_places(limits: Mapping[int, Limit], now: datetime) -> list[int]:
    """Give the free places of keys to the runs that have waited longest, and wake these runs.

    Call it outside of transactions that have locked executions: it waits for the rows of the keys.

    Args:
        limits: maps the primary key of each limit to the rules that hold now.

    Returns:
        Their executions. A message must offer them now (`publish_woken`), unless the executions table is the queue.
    """
    if not limits:
        return []
    with transaction.atomic():
        # All processes lock several keys in this order, or do not wait for them.
        locked = LimitKey.objects.select_for_update().defer("used_at")
        rows = list(locked.filter(pk__in=list(limits)).order_by("pk"))
        facts = facts_of([row.pk for row in rows])
        given: list[int] = []
        for row in rows:
            rules = limits[row.pk]
            known = facts[row.pk]
            given += first_waiting(row.pk, known, rules.room(known.taken, starts_of(row), now, known.granted))
        if not given:
            return []
        LimitPlace.objects.filter(pk__in=given, state=WAITS).update(state=GRANTED, since=now)
        return wake(given, now)


def wake(keys: Sequence[int], now: datetime) -> list[int]:
    """Offer runs to the consumers at once. Returns those that have waited; see `publish_woken`."""
    rows = SchedulerExecution.objects.filter(pk__in=keys, deferred_at__isnull=False)
    with transaction.atomic():
        # All processes lock executions in this order.
        states = dict(rows.select_for_update().order_by("pk").values_list("pk", "state"))
        queued = [pk for pk, state in states.items() if state == State.QUEUED]
        claimed = [pk for pk, state in states.items() if state == State.CLAIMED]
        if queued:
            # They have waited in the queue before. They do not line up again behind all that has come since then.
            since = Coalesce(Least("executed_at", Value(now)), Value(now))
            rows.filter(pk__in=queued).update(wake_at=since, deferred_at=None, reason="")
        if claimed:
            columns = {"deferred_at": None, "reason": "", "published_at": None}
            rows.filter(pk__in=claimed).update(wake_at=now + CLAIM_GRACE, **columns)
    return queued + claimed


def publish_woken(keys: Sequence[int], broker: Broker, now: datetime) -> None:
    """Publish runs that were woken. If it fails, a sweep publishes them after CLAIM_GRACE."""
    if keys:
        publish_soon(woken_rows(keys, now), broker)


def woken_rows(keys: Sequence[int], now: datetime) -> list[SchedulerExecution]:
    """The rows of runs that were woken and that no consumer has started yet, in the order of `keys`."""
    rows = read_rows(SchedulerExecution.objects.in_state(State.CLAIMED).filter(pk__in=keys), now)
    return sorted(rows, key=lambda row: keys.index(row.pk))
